// SPDX-License-Identifier: MIT
// duckdb.js FOLDER SQL...: rows of each query as a line of JSON, by the DuckDB that npm put into FOLDER.
const { createRequire } = require('module');
const path = require('path');

const folder = createRequire(path.resolve(process.argv[2], 'x.js'));
const { DuckDBInstance } = folder('@duckdb/node-api');
const plain = (v) => (typeof v === 'bigint' ? Number(v) : v);

(async () => {
	const db = await (await DuckDBInstance.create(':memory:')).connect();
	for (const sql of process.argv.slice(3)) {
		const result = await db.runAndReadAll(sql);
		console.log(JSON.stringify(result.getRows().map((row) => row.map(plain))));
	}
})();
