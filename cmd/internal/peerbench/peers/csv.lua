local byte, find, sub = string.byte, string.find, string.sub
local function quote(s)
  if find(s, '[",\n]') then return '"' .. string.gsub(s, '"', '""') .. '"' end
  return s
end
local function cells(line)
  local out, i = {}, 1
  while true do
    if byte(line, i) == 34 then
      local e = i + 1
      while true do
        e = find(line, '"', e, true)
        if byte(line, e + 1) ~= 34 then break end
        e = e + 2
      end
      out[#out + 1] = string.gsub(sub(line, i + 1, e - 1), '""', '"')
      i = e + 1
    else
      local e = find(line, ",", i, true)
      out[#out + 1] = sub(line, i, (e or 0) - 1)
      i = e or #line + 1
    end
    if i > #line then return out end
    i = i + 1
  end
end
return function(n)
  local names, kindOf = {"id", "kind", "name", "qty"}, {"tool", "toy", "book"}
  local records = {}
  for i = 0, n - 1 do
    local name = "no. " .. i
    if i % 5 == 0 then name = name .. ', "new"' end
    records[i + 1] = {id = i, kind = kindOf[i % 3 + 1], name = name, qty = i * 17 % 100}
  end
  local out = {table.concat(names, ",")}
  for i, r in ipairs(records) do out[i + 1] = r.id .. "," .. quote(r.kind) .. "," .. quote(r.name) .. "," .. r.qty end
  local text = table.concat(out, "\n") .. "\n"
  local rows, head = {}, nil
  for line in string.gmatch(text, "[^\n]+") do
    local found = cells(line)
    if head then
      local r = {}
      for k, name in ipairs(head) do r[name] = found[k] end
      rows[#rows + 1] = r
    else
      head = found
    end
  end
  local kinds, sum = {}, #text
  for _, r in ipairs(rows) do
    kinds[r.kind] = (kinds[r.kind] or 0) + tonumber(r.qty)
    sum = sum + #r.name
  end
  for _, x in pairs(kinds) do sum = sum + x end
  return sum
end
