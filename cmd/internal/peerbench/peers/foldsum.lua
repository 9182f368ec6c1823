local function fold(f, acc, xs)
  for i = 1, #xs do acc = f(acc, xs[i]) end
  return acc
end
local function upto(n)
  local xs = {}
  for i = 1, n do xs[i] = i end
  return xs
end
return function(n) return fold(function(a, x) return a + x end, 0, upto(n)) end
