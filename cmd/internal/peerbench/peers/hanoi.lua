local function move(a, b, st)
  return {st[1] + 1, (st[2] * 31 + (a * 3 + b)) % 1000003}
end
local function hanoi(n, a, b, c, st)
  if n == 0 then return st end
  return hanoi(n - 1, c, b, a, move(a, b, hanoi(n - 1, a, c, b, st)))
end
return function(n)
  local st = hanoi(n, 1, 2, 3, {0, 7})
  return st[1] * 1000003 + st[2]
end
