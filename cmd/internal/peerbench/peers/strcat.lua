return function(n)
  local s = ""
  for i = n, 1, -1 do
    s = s .. (i % 2 == 0 and "ab" or "cde")
  end
  return #s
end
