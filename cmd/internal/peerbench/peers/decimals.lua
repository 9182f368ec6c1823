local floor = math.floor
return function(n)
  local balance = 100000
  for day = 0, n - 1 do
    local interest = floor((balance * 5 + 5000) / 10000)
    local fee = floor((balance * 4 + 5000) / 10000)
    balance = balance + interest - fee + (day % 30 == 0 and 1250 or 25)
  end
  return balance
end
