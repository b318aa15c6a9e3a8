// The films nearest to one film: npm install @grpc/grpc-js @grpc/proto-loader && node similar.js localhost:50051
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const path = require('path');

const protos = path.join(__dirname, '..', '..', 'proto');
const contract = loader.loadSync('simile/v1/search.proto', {includeDirs: [protos], keepCase: true, defaults: true});
const {SearchService} = grpc.loadPackageDefinition(contract).simile.v1;

const films = new SearchService(process.argv[2], grpc.credentials.createInsecure());
const request = {collection: 'films', queries: [{id: 'heat-1995'}], options: {k: 5}};
films.Search(request, {deadline: Date.now() + 2000}, (error, answer) => {
  if (error) throw error;
  for (const hit of answer.results[0].hits) console.log(hit.score.toFixed(4), hit.id);
});
