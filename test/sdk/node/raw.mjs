// No client at all: it sends the requests that it reads, a JSON list, to the address that the command line names, with
// the version of HTTP that it names, and prints all that came back.
import http from "node:http";
import http2 from "node:http2";
import { text } from "node:stream/consumers";

const [base, version] = process.argv.slice(2);

// pairs is a header as a list of names and values.
const pairs = (headers) => Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one]));

function send2({ method, path, headers, body }) {
  return new Promise((resolve, reject) => {
    const url = new URL(base + path);
    const session = http2.connect(url.origin);
    session.on("error", reject);
    const stream = session.request({ ":method": method, ":path": url.pathname + url.search, ...headers }, { endStream: !body });
    const answer = { reason: "", version: "2", trailers: [] };
    const pieces = [];
    stream.on("response", ({ ":status": status, ...rest }) => Object.assign(answer, { status, headers: pairs(rest) }));
    stream.on("trailers", (trailers) => (answer.trailers = pairs(trailers)));
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("error", reject);
    stream.on("end", () => {
      session.close();
      resolve({ ...answer, body: Buffer.concat(pieces).toString("base64") });
    });
    if (body) stream.end(body);
  });
}

function send1({ method, path, headers, body }) {
  return new Promise((resolve, reject) => {
    const request = http.request(base + path, { method, headers, agent: false }, (response) => {
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode,
          reason: response.statusMessage,
          version: response.httpVersion,
          headers: response.rawHeaders,
          trailers: response.rawTrailers,
          body: Buffer.concat(pieces).toString("base64"),
        }),
      );
    });
    request.on("error", reject);
    request.end(body || undefined);
  });
}

const answers = [];
for (const request of JSON.parse(await text(process.stdin))) answers.push(await (version === "2" ? send2 : send1)(request));
process.stdout.write(JSON.stringify(answers) + "\n");
