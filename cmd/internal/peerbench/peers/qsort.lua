local function fold(f, acc, xs, from)
  for i = from, #xs do acc = f(acc, xs[i]) end
  return acc
end
local function push(xs, x)
  xs[#xs + 1] = x
  return xs
end
local function random(n)
  local xs, s = {}, 42
  for i = 1, n do
    s = (s * 4096 + 150889) % 714025
    xs[i] = s
  end
  return xs
end
local function qs(xs)
  if #xs == 0 then return xs end
  local pv = xs[1]
  local q = fold(function(a, x)
    local side = x < pv and a[1] or a[2]
    side[#side + 1] = x
    return a
  end, {{}, {}}, xs, 2)
  local low = qs(q[1])
  low[#low + 1] = pv
  return fold(push, low, qs(q[2]), 1)
end
return function(n)
  return fold(function(a, x) return (a * 31 + x) % 1000003 end, 0, qs(random(n)), 1)
end
