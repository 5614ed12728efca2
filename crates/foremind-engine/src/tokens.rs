//! How many tokens a text costs a host's model, estimated from above without a table.

/// Estimated tokens of a text. The estimate of lines joined by line breaks is the sum of theirs plus one for
/// each break.
pub(crate) fn estimate(text: &str) -> u32 {
    let mut lines = text.split('\n');
    let first = lines.next().map_or(0, estimate_line);
    lines.fold(first, |sum, line| {
        sum.saturating_add(1).saturating_add(estimate_line(line))
    })
}

/// Estimated tokens of a text without line breaks.
pub(crate) fn estimate_line(line: &str) -> u32 {
    (line.len() as u32).div_ceil(2)
}
