//! What `tools/guard/train.py` learns from: reads JSON lines with `text` from standard input and writes for each the number of
//! its pieces, and for each piece the number of its buckets and the buckets, as the guard itself sees them; all of them `u32` in
//! little-endian order.
#![allow(missing_docs)]

use std::io::{BufRead, Write, stdin, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let guard = foremind_guard::Guard::new();
    let mut out = std::io::BufWriter::new(stdout().lock());
    for line in stdin().lock().lines() {
        let row: serde_json::Value = serde_json::from_str(&line?)?;
        let text = row["text"].as_str().ok_or("a row without text")?;
        // Secrets are gone by the time that instructions are looked for.
        let text = guard.turn(text).unwrap_or_default();
        let buckets = foremind_guard::instruction_buckets(&text);
        let mut write = |number: usize| out.write_all(&(number as u32).to_le_bytes());
        write(buckets.len())?;
        for piece in buckets {
            write(piece.len())?;
            for bucket in piece {
                write(bucket as usize)?;
            }
        }
    }
    Ok(())
}
