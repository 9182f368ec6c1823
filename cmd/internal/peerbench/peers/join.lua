return function(n)
  local names = {"north", "south", "east", "west"}
  local customers, orders, byId = {}, {}, {}
  for i = 0, 999 do customers[i + 1] = {id = i, name = "customer " .. i, region = names[i % 4 + 1]} end
  for i = 0, n - 1 do orders[i + 1] = {id = i, customer = i * 7919 % 1000, amount = i * 31 % 500} end
  for _, c in ipairs(customers) do byId[c.id] = c end
  local joined, groups = {}, {}
  for _, o in ipairs(orders) do
    if o.amount >= 50 then
      local c = byId[o.customer]
      joined[#joined + 1] = {id = o.id, customer = o.customer, amount = o.amount, name = c.name, region = c.region}
    end
  end
  for _, o in ipairs(joined) do
    local g = groups[o.region]
    if g then g[#g + 1] = o else groups[o.region] = {o} end
  end
  local sum = 0
  for _, os in pairs(groups) do
    local total = 0
    for _, o in ipairs(os) do total = total + o.amount end
    sum = sum + total + #os
  end
  table.sort(joined, function(a, b)
    if a.amount ~= b.amount then return a.amount > b.amount end
    return a.id < b.id
  end)
  for k = 1, 10 do sum = sum + joined[k].id + #joined[k].name end
  return sum
end
