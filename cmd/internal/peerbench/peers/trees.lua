local function build(d, i)
  if d == 0 then return i end
  return {build(d - 1, i * 2), (build(d - 1, i * 2 + 1))}
end
local function sum(d, t)
  if d == 0 then return t end
  return sum(d - 1, t[1]) + sum(d - 1, t[2])
end
return function(n) return sum(n, build(n, 1)) end
