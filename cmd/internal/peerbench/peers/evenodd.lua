local even, odd
function even(n)
  if n == 0 then return 1 end
  return odd(n - 1)
end
function odd(n)
  if n == 0 then return 0 end
  return even(n - 1)
end
return function(n)
  local acc = 0
  for i = n, 1, -1 do acc = acc + even(i) end
  return acc
end
