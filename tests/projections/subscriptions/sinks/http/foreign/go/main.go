// A receiver: says what the Go libraries make of each request, one JSON object to a line.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	verifier, err := webhooks.NewWebhook(os.Args[1])
	if err != nil {
		panic(err)
	}
	out := json.NewEncoder(os.Stdout)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verified := verifier.Verify(body, r.Header) == nil
		r.Body = io.NopCloser(bytes.NewReader(body))
		message := cehttp.NewMessageFromHttpRequest(r)
		var events any
		var failed error
		if message.ReadEncoding() == binding.EncodingBatch {
			events, failed = binding.ToEvents(r.Context(), message, r.Body)
		} else {
			events, failed = binding.ToEvent(r.Context(), message)
		}
		if failed != nil {
			_ = out.Encode(map[string]any{"error": failed.Error()})
		} else {
			_ = out.Encode(map[string]any{"mode": message.ReadEncoding().String(), "events": events, "verified": verified})
		}
		w.WriteHeader(http.StatusAccepted)
	}))
}
