"use strict";
const vscode = require("vscode");
const { Client } = require("./client.js");

let client;

const range = (r) => new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
const at = (document, position) => ({
  textDocument: { uri: document.uri.toString() },
  position: { line: position.line, character: position.character },
});

async function activate(context) {
  const problems = vscode.languages.createDiagnosticCollection("pif");
  context.subscriptions.push(problems);
  const settings = vscode.workspace.getConfiguration("pif");
  const command = settings.get("command");
  client = new Client(
    command,
    settings.get("arguments"),
    (method, params) => {
      if (method !== "textDocument/publishDiagnostics") return;
      problems.set(
        vscode.Uri.parse(params.uri),
        params.diagnostics.map((d) => {
          const severity = d.severity === 1 ? vscode.DiagnosticSeverity.Error : vscode.DiagnosticSeverity.Warning;
          const problem = new vscode.Diagnostic(range(d.range), d.message, severity);
          problem.source = d.source;
          problem.code = d.code;
          return problem;
        }),
      );
    },
    (why) => vscode.window.showErrorMessage(`${command} lsp: ${why}. The setting pif.command names the program.`),
  );
  try {
    await client.request("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  } catch {
    return; // told already
  }
  client.notify("initialized", {});

  const isPif = (document) => document.languageId === "pif";
  const opened = (document) => {
    if (!isPif(document)) return;
    const textDocument = { uri: document.uri.toString(), languageId: "pif", version: document.version, text: document.getText() };
    client.notify("textDocument/didOpen", { textDocument });
  };
  vscode.workspace.textDocuments.forEach(opened);
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument(opened),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (!isPif(document)) return;
      const textDocument = { uri: document.uri.toString(), version: document.version };
      client.notify("textDocument/didChange", { textDocument, contentChanges: [{ text: document.getText() }] });
    }),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (!isPif(document)) return;
      problems.delete(document.uri);
      client.notify("textDocument/didClose", { textDocument: { uri: document.uri.toString() } });
    }),
    vscode.languages.registerHoverProvider("pif", {
      async provideHover(document, position) {
        const hover = await client.request("textDocument/hover", at(document, position));
        return hover && new vscode.Hover(new vscode.MarkdownString().appendCodeblock(hover.contents.value, "text"));
      },
    }),
    vscode.languages.registerCompletionItemProvider(
      "pif",
      {
        async provideCompletionItems(document, position) {
          const items = await client.request("textDocument/completion", at(document, position));
          return items.map((i) => {
            const item = new vscode.CompletionItem(i.label, i.kind - 1); // the protocol counts from 1
            item.detail = i.detail;
            item.insertText = i.textEdit.newText;
            item.range = range(i.textEdit.range);
            return item;
          });
        },
      },
      "@", "!", ".",
    ),
    vscode.languages.registerDocumentFormattingEditProvider("pif", {
      async provideDocumentFormattingEdits(document) {
        const edits = await client.request("textDocument/formatting", { textDocument: { uri: document.uri.toString() } });
        return edits.map((e) => vscode.TextEdit.replace(document.validateRange(range(e.range)), e.newText));
      },
    }),
  );
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
