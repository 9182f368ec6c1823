return function(n)
  local cells, widths, out = {}, {0, 0, 0, 0}, {}
  for i = 0, n - 1 do
    cells[i + 1] = {"item " .. i * i % 1000, tostring(i % 250), tostring(i * 7919 % 100000), i % 2 == 0 and "yes" or "no"}
  end
  for _, row in ipairs(cells) do
    for k, cell in ipairs(row) do widths[k] = math.max(widths[k], #cell) end
  end
  for i, row in ipairs(cells) do
    local padded = {}
    for k, cell in ipairs(row) do padded[k] = cell .. string.rep(" ", widths[k] - #cell) end
    out[i] = table.concat(padded, " | ")
  end
  local sum = #table.concat(out, "\n")
  for _, w in ipairs(widths) do sum = sum + w end
  return sum
end
