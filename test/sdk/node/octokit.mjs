// @octokit/rest. It is told where to send by the variable that GitHub's own runners set.
import { Octokit } from "@octokit/rest";
import { arrived, fails, misbehave, run, untilRefused } from "./cases.mjs";

const quiet = () => {};
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const octokit = new Octokit({ auth: process.env.GITHUB_TOKEN, baseUrl: process.env.GITHUB_API_URL, log });

const repo = { owner: "octo", repo: "locks" };
const seen = ({ status, data, headers }) => ({ status, data, etag: headers.etag ?? null, type: headers["content-type"] });

await run({
  request: async () => seen(await octokit.request("GET /repos/{owner}/{repo}", repo)),
  get: async () => seen(await octokit.rest.repos.get(repo)),
  user: async () => seen(await octokit.rest.users.getAuthenticated()),
  list: async () => seen(await octokit.rest.issues.listForRepo({ ...repo, per_page: 10 })),
  pages: async () => (await octokit.paginate(octokit.rest.issues.listForRepo, { ...repo, per_page: 40 })).map((issue) => issue.number),
  search: async () => seen(await octokit.rest.search.issuesAndPullRequests({ q: "is:open lock", advanced_search: "true" })),
  create: async () => seen(await octokit.rest.issues.create({ ...repo, title: "It leaks", body: "A little." })),
  graphql: () => octokit.graphql("query { viewer { login } repository(owner: \"octo\", name: \"locks\") { name } }"),
  limit: async () => Object.keys((await octokit.rest.rateLimit.get()).data.resources),
  unchanged: async () => {
    const first = await octokit.request("GET /repos/{owner}/{repo}", repo);
    return fails(() => octokit.request("GET /repos/{owner}/{repo}", { ...repo, headers: { "if-none-match": first.headers.etag } }));
  },

  missing: () => octokit.rest.issues.get({ ...repo, issue_number: 4711 }),
  invalid: () => octokit.rest.issues.create({ ...repo, title: "" }),
  broken: () => octokit.rest.issues.create({ ...repo, title: "Break", ...misbehave("status=500") }),

  // exhausted: somebody else has used up the limit, and the gate does not know.
  exhausted: async () => {
    const other = new Octokit({ auth: process.env.GITHUB_TOKEN, baseUrl: process.env.DIRECT_BASE_URL, log });
    await untilRefused(() => other.rest.repos.get(repo));
    return seen(await octokit.rest.repos.get(repo));
  },
  refused: () => fails(() => octokit.rest.repos.get(repo)),
  abort: async () => {
    const controller = new AbortController();
    arrived().then(() => controller.abort());
    const error = await fails(() => octokit.rest.repos.get({ ...repo, ...misbehave("hang"), request: { signal: controller.signal } }));
    return { pieces: true, aborted: error.status === 500 || error.class === "DOMException" };
  },
});
