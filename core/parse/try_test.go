package parse_test
import ("testing";"strings";"github.com/mcp-pif/mcp-pif/core/parse")
func TestTry(t *testing.T){
 for _,c:=range []string{
  `{}`,`{"foo":1}`,`{"b":1,"a":2}`,`{"add":[1]}`,`{"add":[1,2,3]}`,`{"add":{"a":1}}`,`{"add":5}`,`{"var":1}`,`{"lam":"x"}`,`{"lam":"x","bdy":1}`,`{"lam":["x","y"],"body":1}`,`{"lam":1,"body":1}`,
  `{"app":{"func":{"lam":"x","body":1}}}`,`{"app":[1]}`,`{"app":{"fn":1,"arg":2}}`,`{"if":[true,1,2]}`,`{"if":{"cond":true,"then":1,"esle":2}}`,`{"if":{}}`,`{"cons":{"head":1}}`,`{"pair":[1]}`,`{"fold":[1,2]}`,`{"fold":1}`,
  `{"continue":1}`,`{"continue":{}}`,`{"code_of":1}`,`{"record":1}`,`{"record":{},"x":1}`,`{"fs.read":{"path":"a"},"add":[1,2]}`,`{"fs.":1}`,`{"let":[["x",1]],"in":2}`,`{"map":[1,2]}`,`{"plus":[1,2]}`,`{"Add":[1,2]}`,
  `{"add":[{"foo":1},{"sub":[1]},{"x":1}]}`, `[{"foo":1},{"sub":[1]},{"x":1},{"a/b":1},{"if":3},{"q":2},{"r":1}]`,
  `{"add":[1,2],"add":[3,4]}`,
  `{"add":[1,2`, `{"add":[1,2}}`, `{"add" [1]}`, `{add:[1]}`, `{"a":1,}`, `[1,]`, `1 2`, `{"add":[1,2]}}`, `"abc`, "\"a\nb\"", `"\x"`, `"\ud800"`, `007`, `1.`, `-`, `+1`, `.5`, `NaN`, `True`, `'a'`, ``, `  `, "\xff", "\"\xff\"", `1e5000`, `{"lam":"x","body":`,`{"a":{"b":[1,{"c"`, "{\n \"add\": [1, 2],\n \"x\": tru\n}",
 } {
  p,f:=parse.Code([]byte(c),parse.Options{})
  if f!=nil { t.Logf("%s\n   %v\n   expected=%q got=%q near=%q line=%d col=%d more=%d",c,f,f.Expected,f.Got,f.Near,f.Line,f.Col,len(f.More)) } else { t.Logf("%s OK %q",c,p.Notes) }
 }
 for _,c:=range []string{`{"add":[3.14,{"mul":[2.5,-0.5]}]}`,`{"add":[1,2],"zzz":3,"ad":2}`,`{"sub":[5,1],"add":[1,2]}`,`{"add":[1],"sub":[5,2]}`,`{"if":{"cond":true,"then":1,"else":2,"elso":3}}`,`{"var":1,"add":[1,2]}`,`{"lam":"x","body":1,"comment":"hi"}`} {
  p,f:=parse.Code([]byte(c),parse.Options{}); if f!=nil {t.Log(f)} else {t.Logf("%s %q",c,p.Notes)}
 }
 for _,c:=range []string{`{"var":"42"}`,`"42"`,`{"a":"1","b.c":["true"," x"]}`,`{"lam":"1","body":1}`,`{"add":5,"x":1}`,`"{\"a\":1,\"a\":2}"`,`"(- 0x1F)"`,`{"record":{"pair":["1"]}}`, `{"quote":{"foo":1}}`, `"[1,\"[2,\\\"3\\\"]\"]"`, `"TRUE"`} {
  p,f:=parse.Input([]byte(c),parse.Auto); if f!=nil {t.Log(f)} else {t.Logf("%s %s %q",c,p.Source.Text,p.Notes)}
 }
 _=strings.Repeat
}
