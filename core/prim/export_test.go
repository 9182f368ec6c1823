package prim

// CardSign is how the card's rules write a row; "": the card has its name.
func CardSign(name string) string { return signs[name] }
