// SPDX-License-Identifier: MIT
// duckdb.js FOLDER SQL: rows of a query as JSON, by the DuckDB that npm put into FOLDER.
const { createRequire } = require('module');
const path = require('path');

const folder = createRequire(path.resolve(process.argv[2], 'x.js'));
const { DuckDBInstance } = folder('@duckdb/node-api');
const plain = (v) => (typeof v === 'bigint' ? Number(v) : v);

(async () => {
	const db = await (await DuckDBInstance.create(':memory:')).connect();
	const result = await db.runAndReadAll(process.argv[3]);
	console.log(JSON.stringify(result.getRows().map((row) => row.map(plain))));
})();
