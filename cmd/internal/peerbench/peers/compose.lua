local function comp(f, g)
  return function(x) return f(g(x)) end
end
local function inc(i) return i + 1 end
return function(n)
  local acc = function(x) return x end
  for _ = 1, n do acc = comp(inc, acc) end
  return acc(0)
end
