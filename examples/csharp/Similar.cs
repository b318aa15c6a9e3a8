// The films nearest to one film. README.md says how to generate the namespace Simile.V1.
using System;
using Grpc.Net.Client;
using Simile.V1;

using var channel = GrpcChannel.ForAddress($"http://{args[0]}");
var request = new SearchRequest {
  Collection = "films", Queries = { new Query { Id = "heat-1995" } }, Options = new SearchOptions { K = 5 } };
var answer = new SearchService.SearchServiceClient(channel).Search(request, deadline: DateTime.UtcNow.AddSeconds(2));
foreach (var hit in answer.Results[0].Hits) Console.WriteLine($"{hit.Score:F4} {hit.Id}");
