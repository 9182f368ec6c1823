package mcpcmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/mcplogin"
)

// loginOptions are the flags of login.
type loginOptions struct {
	at                          ServerLock
	principal, clientID, secret string
	issuer                      string
	scopes                      []string
	port                        int
	noBrowser                   bool
	timeout                     time.Duration
}

func newMCPLogin() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in at a server that has a URL, in the browser",
		Long: `Log in at a server by OAuth: its authorization server is found, this program is
registered there unless --client-id says as what, and the browser is sent there. The
tokens are kept in this user's state, readable by no one else, and are renewed by
themselves; no program and no journal has them. Servers of mcp-pif that run use them
at once. A server that the lock doesn't have yet is added with 'mcp-pif mcp add NAME
URL --login'.

Without a browser on this machine open the URL that is printed on another, log in,
and paste the URL to which that browser was sent, which it can't open.`,
		Example: `  mcp-pif mcp login tracker
  mcp-pif mcp login tracker --principal anna --no-browser`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, s, err := o.at.find(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			return cli.Failed(login(cmd, l, args[0], s, &o))
		},
	}
	o.at.Register(cmd)
	o.register(cmd)
	cmd.Flags().StringVar(&o.principal, "principal", "", "log in for the principal with this `NAME`")
	return cmd
}

func (o *loginOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.clientID, "client-id", "", "log in as the client with this `ID`, registered before")
	f.StringVar(&o.secret, "client-secret-file", "", "the `FILE` with that client's secret, if it has one")
	f.StringVar(&o.issuer, "issuer", "", "refuse any other authorization server than the one at this `URL`, which may be on this machine or a private network then")
	f.StringSliceVar(&o.scopes, "scope", nil, "ask for these `SCOPES` in place of those that the server names")
	f.IntVar(&o.port, "port", 0, "take the redirect at this `PORT` of 127.0.0.1 (default any)")
	f.BoolVar(&o.noBrowser, "no-browser", false, "open no browser")
	f.DurationVar(&o.timeout, "login-timeout", 10*time.Minute, "wait for you for this `TIME`")
}

// login has the person log in at a server, and keeps the login.
func login(cmd *cobra.Command, l *mcplock.Lock, name string, s *mcplock.Server, o *loginOptions) error {
	if s.URL == "" {
		return fmt.Errorf("%s is a program: only a server that has a URL is logged in at", name)
	}
	kept, err := app.SecretsOf(l)
	if err != nil {
		return err
	}
	folder, err := kept.LoginFolder(name, o.principal)
	if err != nil {
		return err
	}
	policy, inherit := s.Policy(nil)
	_, headers, _ := app.InheritedValues(inherit, func(variable string) (string, bool) { return kept.Read(name, variable) })
	for header, value := range policy.Headers {
		headers[header] = value.Text
	}
	options := mcplogin.Options{
		Server: s.URL, Headers: headers, ClientID: o.clientID, Issuer: o.issuer, Scopes: o.scopes, Port: o.port,
		Show: func(at *url.URL) { o.show(cmd, s, at) },
	}
	if o.secret != "" {
		text, err := os.ReadFile(o.secret)
		if err != nil {
			return err
		}
		options.ClientSecret = strings.TrimSpace(string(text))
	}
	if o.isPasted(cmd) {
		options.Pasted = func(ctx context.Context) (string, error) {
			line, err := cli.ReadLine(ctx, cmd.InOrStdin())
			if strings.TrimSpace(line) == "" {
				<-ctx.Done() // nothing is pasted: the redirect may still come
				return "", errors.Join(ctx.Err(), err)
			}
			return line, nil
		}
	}
	ctx, stop := signal.NotifyContext(cli.Context(cmd), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	got, err := mcplogin.Begin(ctx, options)
	if err != nil {
		return fmt.Errorf("no login at %s: %s", name, lock.Shown(err.Error(), 500))
	}
	got.Principal = o.principal
	if err := got.Write(folder); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "logged in at %s%s, by %s; %s\n", name, forPrincipal(o.principal), lock.Shown(got.Issuer, 200), validUntil(got))
	return nil
}

func forPrincipal(name string) string {
	if name == "" {
		return ""
	}
	return " for " + lock.Shown(name, 60)
}

// validUntil says how long a login is good.
func validUntil(l *mcplogin.Login) string {
	switch {
	case l.Refresh != "":
		return "it is renewed by itself"
	case l.Expiry.IsZero():
		return "it doesn't say for how long"
	case time.Now().After(l.Expiry):
		return "it ended at " + l.Expiry.Local().Format(time.DateTime)
	}
	return "it ends at " + l.Expiry.Local().Format(time.DateTime)
}

// show tells the person where to log in, and opens the browser there.
// isPasted reports whether somebody may paste a redirect's URL.
func (o *loginOptions) isPasted(cmd *cobra.Command) bool {
	return o.noBrowser || cli.IsTerminal(cmd.InOrStdin())
}

func (o *loginOptions) show(cmd *cobra.Command, s *mcplock.Server, at *url.URL) {
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "Log in at %s, which %s names. If no browser opens, open\n\n%s\n\n", lock.Shown(at.Host, 200), lock.Shown(s.URL, 200), lock.Shown(at.String(), 4000))
	if (o.noBrowser || !openBrowser(at.String())) && o.isPasted(cmd) {
		fmt.Fprintln(out, "and paste the URL to which the browser is sent then, if it is on another machine:")
	}
}

// openBrowser opens a URL, and reports whether there is something that may do that.
func openBrowser(at string) bool {
	line := []string{"xdg-open"}
	switch {
	case runtime.GOOS == "darwin":
		line = []string{"open"}
	case runtime.GOOS == "windows":
		line = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return false
	}
	opener := exec.Command(line[0], append(line[1:], at)...)
	if opener.Start() != nil {
		return false
	}
	go func() { _ = opener.Wait() }()
	return true
}

func newMCPLogout() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget a login at a server",
		Long: `Forget the tokens of a login at a server. Servers of mcp-pif that run have none from
now on. Whether the tokens hold elsewhere is the authorization server's to say.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, _, err := o.at.find(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			kept, err := app.SecretsOf(l)
			if err != nil {
				return cli.Failed(err)
			}
			folder, err := kept.LoginFolder(args[0], o.principal)
			if err == nil {
				err = mcplogin.Remove(folder)
			}
			if errors.Is(err, mcplogin.ErrNone) {
				return cli.Failed(fmt.Errorf("nobody is logged in at %s%s", args[0], forPrincipal(o.principal)))
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "logged out of %s%s\n", args[0], forPrincipal(o.principal))
			}
			return cli.Failed(err)
		},
	}
	o.at.Register(cmd)
	cmd.Flags().StringVar(&o.principal, "principal", "", "the login of the principal with this `NAME`")
	return cmd
}

// loggedIn reads the logins at a server, everybody's first, and then those of principals.
func loggedIn(l *mcplock.Lock, name string) (all []*mcplogin.Login) {
	kept, err := app.SecretsOf(l)
	if err != nil {
		return nil
	}
	for _, folder := range kept.LoginFolders(name) {
		if login, err := mcplogin.Read(folder, l.Servers[name].URL); err == nil {
			all = append(all, login)
		}
	}
	slices.SortFunc(all, func(a, b *mcplogin.Login) int { return strings.Compare(a.Principal, b.Principal) })
	return all
}
