package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// tasksExtension is the extension of MCP by which clients know tasks. They declare it in each
// request; see https://github.com/modelcontextprotocol/ext-tasks, specification/2026-07-28.
const tasksExtension = "io.modelcontextprotocol/tasks"

// taskPoll is how often a client should ask.
const taskPoll = 500 * time.Millisecond

type taskParams struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// A taskAnswer is what is told of a task: in place of a call's result, with the type task, and to
// tasks/get.
type taskAnswer struct {
	mcp.ResultBase
	ResultType    string              `json:"resultType"`
	TaskID        string              `json:"taskId"`
	Status        string              `json:"status"`
	StatusMessage string              `json:"statusMessage,omitempty"`
	CreatedAt     string              `json:"createdAt"`
	LastUpdatedAt string              `json:"lastUpdatedAt"`
	TTLMs         int64               `json:"ttlMs"`
	PollMs        int64               `json:"pollIntervalMs"`
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result        *mcp.CallToolResult `json:"result,omitempty"`
}

type taskAck struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

func answered(st *engine.TaskState, resultType string) *taskAnswer {
	a := &taskAnswer{
		ResultType: resultType, TaskID: st.ID, Status: st.Status, StatusMessage: st.Message,
		CreatedAt: wire.Instant(st.Created), LastUpdatedAt: wire.Instant(st.Updated),
		TTLMs: engine.TaskLifetime.Milliseconds(), PollMs: taskPoll.Milliseconds(),
	}
	if resultType == "task" {
		return a
	}
	for _, q := range st.Questions {
		if a.InputRequests == nil {
			a.InputRequests = mcp.InputRequestMap{}
		}
		a.InputRequests[q.Key] = q.Params
	}
	if st.Status == engine.TaskCompleted && st.Answer != nil {
		a.Result = st.Answer.Result()
	}
	return a
}

// addTaskMethods has the SDK know the methods of the extension.
func (s *Server) addTaskMethods() {
	get := func(ctx context.Context, ss *mcp.ServerSession, p *taskParams) (*taskAnswer, error) {
		st, err := s.known(ctx, ss, p, true)
		if err != nil {
			return nil, err
		}
		return answered(&st, "complete"), nil
	}
	update := func(ctx context.Context, ss *mcp.ServerSession, p *taskParams) (*taskAck, error) {
		if _, err := s.known(ctx, ss, p, false); err != nil {
			return nil, err
		}
		question, err := s.Questions(p.TaskID)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		if question == nil {
			return &taskAck{ResultType: "complete"}, nil
		}
		var replies []func()
		for key, response := range p.InputResponses {
			q, err := question(key, len(response))
			if err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
			}
			if q == nil { // it was answered, or never put
				continue
			}
			var res mcp.ElicitResult
			if err := json.Unmarshal(response, &res); err != nil || res.Action == "" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the response to %.100q is no result of elicitation/create", key)}
			}
			replies = append(replies, func() { q.Reply(&res) })
		}
		for _, reply := range replies { // when all are well-formed
			reply()
		}
		return &taskAck{ResultType: "complete"}, nil
	}
	cancel := func(ctx context.Context, ss *mcp.ServerSession, p *taskParams) (*taskAck, error) {
		if _, err := s.known(ctx, ss, p, false); err != nil {
			return nil, err
		}
		if f := s.CancelTask(p.TaskID, "client"); f != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message}
		}
		return &taskAck{ResultType: "complete"}, nil
	}
	for _, err := range []error{
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/get", get),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/update", update),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/cancel", cancel),
	} {
		if err != nil {
			s.log.Error("the SDK has methods of its own for tasks", "error", err)
		}
	}
}

// known gives the task that a client asks for, if it declares the extension, with its answer where
// that is wanted.
func (s *Server) known(ctx context.Context, ss *mcp.ServerSession, p *taskParams, whole bool) (st engine.TaskState, err error) {
	if init := ss.InitializeParams(); init != nil && init.ProtocolVersion < firstStateless {
		return st, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "tasks are an extension of protocol 2026-07-28; earlier clients call run with background, and with task"}
	}
	if p == nil || !declaresTasks(p.Meta) {
		data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}})
		return st, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "missing required client capability: the extension " + tasksExtension, Data: data}
	}
	st, ok := s.TaskState(ctx, p.TaskID, whole)
	if !ok {
		return st, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: engine.NoTask(p.TaskID).Message}
	}
	return st, nil
}

// declaresTasks reports whether a request's _meta declares the extension.
func declaresTasks(meta mcp.Meta) bool {
	capabilities, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, ok := extensions[tasksExtension]
	return ok
}

// asTask does a call of a client that knows tasks; a task may be the answer.
func (s *Server) asTask(ctx context.Context, req *mcp.CallToolRequest, c Call) *mcp.CallToolResult {
	able := req.ClientCapabilities()
	st := s.AsTask(ctx, c, able != nil && able.Elicitation != nil && (able.Elicitation.Form != nil || able.Elicitation.URL == nil))
	if st.Answer == nil {
		requested(ctx).task = answered(&st, "task")
		return &mcp.CallToolResult{Content: []mcp.Content{}}
	}
	return st.Answer.Result()
}
