return function(n)
  local out, dates, count, costs = {}, {}, 0, 0
  for i = 0, n - 1 do
    out[i + 1] = "on 2026-" .. 10 + i % 3 .. "-" .. 10 + i % 19 .. " user=u" .. i % 100 .. " cost=" .. i * 37 % 1000 .. " ok; "
  end
  local text, pairs = table.concat(out), {}
  for k, v in string.gmatch(text, "([%w_]+)=([%w_]+)") do pairs[#pairs + 1] = {k, v} end
  for _, p in ipairs(pairs) do
    if p[1] == "cost" then costs = costs + tonumber(p[2]) end
  end
  for d in string.gmatch(text, "%d%d%d%d%-%d%d%-%d%d") do
    if not dates[d] then
      dates[d] = true
      count = count + 1
    end
  end
  local masked = string.gsub(text, "user=[%w_]+", "user=*")
  return costs + count * 1000000 + #masked
end
