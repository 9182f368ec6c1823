local function steps(k)
  local c = 1
  while k ~= 1 do
    if k % 2 == 0 then k = k / 2 else k = k * 3 + 1 end
    c = c + 1
  end
  return c
end
return function(n)
  local best, bi = 0, 0
  for i = 1, n - 1 do
    local s = steps(i)
    if s > best then best, bi = s, i end
  end
  return bi * 1000 + best
end
