// The schema registry client of franz-go against the registry at the URL in its argument; prints what it sees as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const order = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
const wider = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}`

type Order struct {
	ID int64 `json:"id"`
}

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func code(err error) int {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return refused.ErrorCode
	}
	return 0
}

func main() {
	client := must(sr.NewClient(sr.URLs(os.Args[1])))
	seen := map[string]any{}

	created := must(client.CreateSchema(ctx, "orders", sr.Schema{Schema: order}))
	again := must(client.CreateSchema(ctx, "orders", sr.Schema{Schema: order}))
	seen["created"] = []int{created.Version, again.Version}
	seen["same id"] = created.ID == again.ID
	seen["by id"] = must(client.SchemaByID(ctx, created.ID)).Schema == order
	seen["by guid"] = must(client.SchemaIDsByGUID(ctx, must(client.SchemaByVersion(ctx, "orders", -1)).GUID))[0].ID == created.ID
	seen["text"] = must(client.SchemaTextByID(ctx, created.ID)) == order && must(client.SchemaTextByVersion(ctx, "orders", 1)) == order
	seen["looked up"] = must(client.LookupSchema(ctx, "orders", sr.Schema{Schema: order})).Version
	seen["subjects of id"] = must(client.SubjectsByID(ctx, created.ID))
	seen["versions of id"] = must(client.SchemaVersionsByID(ctx, created.ID))
	seen["types"] = must(client.SupportedTypes(ctx))
	seen["contexts"] = must(client.Contexts(ctx))

	serde := sr.NewSerde()
	serde.Register(created.ID, Order{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	var decoded Order
	if err := serde.Decode(serde.MustEncode(Order{7}), &decoded); err != nil {
		panic(err)
	}
	seen["decoded"] = decoded.ID

	must(client.CreateSchema(ctx, "address", sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; message Address { string city = 1; }`}))
	person := must(client.CreateSchema(ctx, "person", sr.Schema{
		Type:       sr.TypeProtobuf,
		Schema:     `syntax = "proto3"; import "address.proto"; message Person { Address home = 1; }`,
		References: []sr.SchemaReference{{Name: "address.proto", Subject: "address", Version: 1}},
	}))
	seen["referrers"] = must(client.SchemaReferences(ctx, "address", 1))[0].ID == person.ID
	seen["used by"] = must(client.SchemaUsagesByID(ctx, person.ID))[0].Subject

	level := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "orders")[0]
	seen["level"] = []string{level.Level.String(), client.Compatibility(ctx, "orders")[0].Level.String(), client.Compatibility(ctx)[0].Level.String()}
	check := must(client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "orders", -1, sr.Schema{Schema: wider}))
	seen["check"] = []any{check.Is, len(check.Messages) > 0}
	_, err := client.CreateSchema(ctx, "orders", sr.Schema{Schema: wider})
	seen["refused"] = code(err)
	reset := client.ResetCompatibility(ctx, "orders")[0]
	seen["reset"] = []any{reset.Level.String(), code(client.Compatibility(ctx, "orders")[0].Err)}

	seen["mode"] = client.Mode(ctx)[0].Mode.String()
	seen["set mode"] = client.SetMode(ctx, sr.ModeImport, "imported")[0].Mode.String()
	imported := must(client.CreateSchemaWithIDAndVersion(ctx, "imported", sr.Schema{Schema: `"string"`}, 5000, 3))
	seen["imported"] = []int{imported.ID, imported.Version}
	seen["reset mode"] = client.ResetMode(ctx, "imported")[0].Mode.String()

	seen["all"] = len(must(client.AllSchemas(ctx)))
	seen["deleted"] = [][]int{must(client.DeleteSubject(ctx, "orders", sr.SoftDelete)), must(client.DeleteSubject(ctx, "orders", sr.HardDelete))}
	_, err = client.SchemaByVersion(ctx, "orders", -1)
	seen["missing"] = code(err)
	seen["subjects"] = must(client.Subjects(ctx))
	must(0, json.NewEncoder(os.Stdout).Encode(seen))
}
