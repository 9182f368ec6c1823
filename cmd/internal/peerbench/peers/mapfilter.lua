local function fold(f, acc, xs)
  for i = 1, #xs do acc = f(acc, xs[i]) end
  return acc
end
local function map(f, xs)
  local out = {}
  for i = 1, #xs do out[i] = f(xs[i]) end
  return out
end
local function filter(f, xs)
  local out, k = {}, 0
  for i = 1, #xs do
    local x = xs[i]
    if f(x) then
      k = k + 1
      out[k] = x
    end
  end
  return out
end
local function scale(k) return function(x) return x * k end end
local function shift(k) return function(x) return x + k end end
local function keep(k) return function(x) return x % k ~= 0 end end
return function(n)
  local xs = {}
  for i = 1, n do xs[i] = i end
  return fold(function(a, x) return (a * 7 + x) % 1000003 end, 0,
    map(shift(5), filter(keep(4), map(scale(3), xs))))
end
