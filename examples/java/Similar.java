// The films nearest to one film. README.md says how to generate the package simile.v1 and to run this.
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.util.concurrent.TimeUnit;
import simile.v1.Hit;
import simile.v1.Query;
import simile.v1.SearchOptions;
import simile.v1.SearchRequest;
import simile.v1.SearchServiceGrpc;

public class Similar {
  public static void main(String[] arguments) {
    ManagedChannel channel = ManagedChannelBuilder.forTarget(arguments[0]).usePlaintext().build();
    SearchRequest request =
        SearchRequest.newBuilder()
            .setCollection("films")
            .addQueries(Query.newBuilder().setId("heat-1995"))
            .setOptions(SearchOptions.newBuilder().setK(5))
            .build();
    var films = SearchServiceGrpc.newBlockingStub(channel).withDeadlineAfter(2, TimeUnit.SECONDS);
    for (Hit hit : films.search(request).getResults(0).getHitsList()) {
      System.out.printf("%.4f %s%n", hit.getScore(), hit.getId());
    }
    channel.shutdownNow();
  }
}
