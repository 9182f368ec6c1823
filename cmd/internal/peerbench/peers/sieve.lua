local function filter(f, xs, from)
  local out, k = {}, 0
  for i = from, #xs do
    local x = xs[i]
    if f(x) then
      k = k + 1
      out[k] = x
    end
  end
  return out
end
local function sieve(n, xs, c)
  if #xs == 0 then return c end
  local h = xs[1]
  if h * h > n then return c + #xs end
  return sieve(n, filter(function(x) return x % h ~= 0 end, xs, 2), c + 1)
end
return function(n)
  local xs = {}
  for i = 2, n do xs[i - 1] = i end
  return sieve(n, xs, 0)
end
