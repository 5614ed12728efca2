//! What is known of each character, read once out of what `build.rs` wrote.

use std::sync::OnceLock;

use foremind_types::order::sort_by;

static POINTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/points"));
static KINDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds"));
static FIRSTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/firsts"));
static OTHERS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/others"));

/// Code points of a page: what is looked up is sought on its page only, and most pages are empty.
const PAGE: u32 = 256;

/// A character that decomposes, or that may combine with one before it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    point: u32,
    /// Where its decomposition is in the table's characters; empty for one that only combines.
    from: u16,
    to: u16,
    /// Decomposes in the compatibility forms only.
    pub(crate) compatible: bool,
    /// Canonical combining class (Unicode 3.11), of one that does not decompose.
    pub(crate) class: u8,
}

pub(crate) struct Table {
    /// By code point.
    entries: Vec<Entry>,
    /// The first entry of each page, and of the one after the last.
    pages: Vec<u16>,
    chars: Vec<char>,
    /// What two characters compose to, by both.
    pairs: Vec<(char, char, char)>,
}

impl Table {
    pub(crate) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(Self::read)
    }

    fn read() -> Self {
        let mut table = Self {
            entries: Vec::with_capacity(KINDS.len()),
            pages: Vec::new(),
            chars: Vec::new(),
            pairs: Vec::new(),
        };
        let (mut points, mut kinds) = (Numbers(POINTS), Numbers(KINDS));
        let (mut firsts, mut others) = (Numbers(FIRSTS), Numbers(OTHERS));
        let (mut point, mut first, mut class) = (0_u32, 0_u32, 0_u32);
        while let (Some(step), Some(kind)) = (points.next(), kinds.next()) {
            point += step;
            let from = table.chars.len();
            let combines_only = kind < 1 << 2;
            if combines_only {
                class = class.wrapping_add_signed(firsts.signed());
            } else {
                first = first.wrapping_add_signed(firsts.signed());
                table.chars.extend(char::from_u32(first));
                let others = others.by_ref().take((kind >> 2) as usize - 1);
                table.chars.extend(others.filter_map(char::from_u32));
            }
            if kind & 2 != 0 {
                table.pairs.push((
                    table.chars[from],
                    table.chars[from + 1],
                    char::from_u32(point).unwrap_or_default(),
                ));
            }
            table.turn_to(point / PAGE);
            table.entries.push(Entry {
                point,
                from: from as u16,
                to: table.chars.len() as u16,
                compatible: kind & 1 != 0,
                class: if combines_only { class as u8 } else { 0 },
            });
        }
        table.turn_to(point / PAGE + 1);
        sort_by(&mut table.pairs, Ord::cmp);
        table
    }

    /// Opens the pages up to this one.
    fn turn_to(&mut self, page: u32) {
        self.pages
            .resize(page as usize + 1, self.entries.len() as u16);
    }

    pub(crate) fn entry(&self, c: char) -> Option<Entry> {
        let point = u32::from(c);
        let page = (point / PAGE) as usize;
        let (from, to) = (*self.pages.get(page)?, *self.pages.get(page + 1)?);
        let entries = &self.entries[usize::from(from)..usize::from(to)];
        let at = entries.binary_search_by_key(&point, |entry| entry.point);
        at.ok().map(|at| entries[at])
    }

    /// What it decomposes to in one step; each may decompose again.
    pub(crate) fn parts(&self, entry: Entry) -> &[char] {
        &self.chars[usize::from(entry.from)..usize::from(entry.to)]
    }

    pub(crate) fn composed(&self, first: char, second: char) -> Option<char> {
        let at = self
            .pairs
            .binary_search_by_key(&(first, second), |pair| (pair.0, pair.1));
        at.ok().map(|at| self.pairs[at].2)
    }
}

/// Numbers of any size, as `build.rs` writes them.
struct Numbers(&'static [u8]);

impl Numbers {
    /// The next number, unfolded; 0 at the end.
    fn signed(&mut self) -> i32 {
        let folded = self.next().unwrap_or_default();
        (folded >> 1) as i32 ^ -((folded & 1) as i32)
    }
}

impl Iterator for Numbers {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let last = self.0.iter().position(|byte| *byte < 0x80)?;
        let (bytes, rest) = self.0.split_at(last + 1);
        self.0 = rest;
        let bits = bytes.iter().rev();
        Some(bits.fold(0, |sum, byte| sum << 7 | u32::from(byte & 0x7f)))
    }
}
