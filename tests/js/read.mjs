// Prints the rows of Parquet files as JSON, a line a file: node read.mjs FILE...
// What JSON has no word for is written as text: bytes in hexadecimal digits, NaN and the infinities by their names.
// A list that is null comes as undefined.
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const plain = (_, value) => {
  if (value === undefined) return null
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return value
}

for (const path of process.argv.slice(2)) {
  const file = await asyncBufferFromFile(path)
  const rows = await parquetReadObjects({ file, compressors, utf8: false })
  console.log(JSON.stringify(rows, plain))
}
