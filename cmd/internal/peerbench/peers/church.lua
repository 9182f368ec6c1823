local function zero(_)
  return function(x) return x end
end
local function succ(m)
  return function(f)
    return function(x) return f(m(f)(x)) end
  end
end
local function num(k)
  if k == 0 then return zero end
  return succ(num(k - 1))
end
local function mult(a, b)
  return function(f) return a(b(f)) end
end
local function inc(i) return i + 1 end
local function count(m) return m(inc)(0) end
return function(n)
  local c = num(n)
  return count(c(num(3))) + count(mult(c, c))
end
