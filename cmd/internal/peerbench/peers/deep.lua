local function deep(n)
  if n == 0 then return 0 end
  return n + deep(n - 1)
end
return deep
