// The films nearest to one film. README.md says how to generate the package simile/v1 and to build this.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	pb "simile/v1"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	connection, err := grpc.DialContext(ctx, os.Args[1], grpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	k := uint32(5)
	answer, err := pb.NewSearchServiceClient(connection).Search(ctx, &pb.SearchRequest{
		Collection: "films",
		Queries:    []*pb.Query{{Target: &pb.Query_Id{Id: "heat-1995"}}},
		Options:    &pb.SearchOptions{K: &k},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range answer.Results[0].Hits {
		fmt.Printf("%.4f %s\n", hit.Score, hit.Id)
	}
}
