local function fold(f, acc, xs)
  for i = 1, #xs do acc = f(acc, xs[i]) end
  return acc
end
local function safe(c, d, qs)
  if not qs then return true end
  local q = qs[1]
  if q == c or q == c + d or q == c - d then return false end
  return safe(c, d + 1, qs[2])
end
local function solve(k, qs, cols)
  if k == 0 then return 1 end
  return fold(function(acc, c)
    if safe(c, 1, qs) then return acc + solve(k - 1, {c, qs}, cols) end
    return acc
  end, 0, cols)
end
return function(n)
  local cols = {}
  for i = 1, n do cols[i] = i end
  return solve(n, false, cols)
end
