local floor = math.floor
return function(n)
  local invoices = {}
  for i = 0, n - 1 do
    local lines = {}
    for j = 0, i % 5 do lines[j + 1] = {price = 199 + (i * 37 + j * 91) % 9800, qty = 1 + (i + j) % 4} end
    invoices[i + 1] = {customer = "c" .. i * 7 % 97, rate = i % 3 == 0 and 7 or 19, lines = lines}
  end
  local function total(invoice)
    local net = 0
    for _, l in ipairs(invoice.lines) do net = net + l.price * l.qty end
    local reduced = net > 10000 and net * 95 or net * 100
    return floor((reduced * (100 + invoice.rate) + 5000) / 10000)
  end
  local owed, all = {}, 0
  for _, v in ipairs(invoices) do owed[v.customer] = (owed[v.customer] or 0) + total(v) end
  for _, x in pairs(owed) do all = all + x end
  return all
end
