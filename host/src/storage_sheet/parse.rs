//! Parsers of what file systems and their tools print.

use beff_report::units::{format_size, parse_size};

/// Magic numbers of the layouts of Lustre with one component (`lov_user_md_v1`, `lov_user_md_v3`).
const LOV_MAGICS: [u32; 2] = [0x0BD1_0BD0, 0x0BD3_0BD0];

/// Value of `name=value` among words.
pub(super) fn word_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Value behind `name:` in a line of its own.
fn line_value<'a>(text: &'a str, name: &'a str) -> Option<&'a str> {
    line_values(text, name).next()
}

fn line_values<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.trim().strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

/// A volume of GlusterFS.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GlusterVolume {
    pub(super) bricks: u64,
    pub(super) servers: Vec<String>,
    pub(super) transport: String,
    /// Bricks with data, without copies and parity.
    pub(super) data_bricks: Option<u64>,
    /// Those of one file, without shards.
    pub(super) data_bricks_of_file: Option<u64>,
    pub(super) redundancy: String,
    /// None: files are not divided into shards.
    pub(super) shard_bytes: Option<u64>,
    /// Options that were set.
    pub(super) options: String,
}

/// Output of `gluster volume info VOLUME`.
pub(super) fn gluster_volume(text: &str) -> Option<GlusterVolume> {
    let kind = line_value(text, "Type")?;
    let number = line_value(text, "Number of Bricks")?;
    let (groups, data, more) = brick_numbers(number)?;
    let bricks = groups * (data + more);
    let is_dispersed = kind.contains("Disperse");
    let redundancy = match (is_dispersed, data + more, more) {
        (_, 1, _) => "none".to_owned(),
        (true, ..) => format!("erasure code, {data} + {more}"),
        (false, _, 0) if number.contains('x') || kind == "Replicate" => format!("{data} replicas"),
        (false, _, arbiters) => format!("{data} replicas, {arbiters} arbiter"),
    };
    let mut servers: Vec<String> = Vec::new();
    for line in text.lines() {
        let brick = line.trim().strip_prefix("Brick").and_then(|rest| rest.split_once(": "));
        let Some((_, place)) = brick.filter(|(number, _)| number.parse::<u64>().is_ok()) else { continue };
        let server = place.split(':').next().unwrap_or_default().to_owned();
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let (_, options) = text.split_once("Options Reconfigured:").unwrap_or_default();
    let option = |name: &'static str| line_value(options, name);
    let is_sharded = option("features.shard").is_some_and(|value| value == "on" || value == "enable");
    // The default of GlusterFS.
    let shard_bytes = parse_size(option("features.shard-block-size").unwrap_or("64MB")).ok();
    let of_file = if is_dispersed { data } else { 1 };
    Some(GlusterVolume {
        bricks,
        servers,
        transport: line_value(text, "Transport-type").unwrap_or_default().to_owned(),
        data_bricks: Some(groups * of_file),
        data_bricks_of_file: Some(of_file),
        redundancy,
        shard_bytes: shard_bytes.filter(|_| is_sharded),
        options: options.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", "),
    })
}

/// `3`, `2 x 3 = 6`, `1 x (2 + 1) = 3`: groups of bricks, and in each group those with data and further ones. Distributed bricks are groups
/// of one.
fn brick_numbers(text: &str) -> Option<(u64, u64, u64)> {
    let Some((groups, rest)) = text.split_once('x') else { return Some((text.trim().parse().ok()?, 1, 0)) };
    let groups = groups.trim().parse().ok()?;
    let size = rest.split('=').next()?.trim();
    match size.strip_prefix('(').and_then(|size| size.strip_suffix(')')) {
        Some(sum) => {
            let (data, more) = sum.split_once('+')?;
            Some((groups, data.trim().parse().ok()?, more.trim().parse().ok()?))
        }
        None => Some((groups, size.parse().ok()?, 0)),
    }
}

/// Place of a file of GlusterFS.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GlusterPlace {
    pub(super) data_bricks: Option<u64>,
    pub(super) redundancy: String,
}

/// `(<DISTRIBUTE:vol-dht> (<REPLICATE:vol-replicate-0> <POSIX(/brick):host:/brick/file> ...))`.
pub(super) fn gluster_place(text: &str) -> Option<GlusterPlace> {
    let bricks = text.matches("<POSIX").count() as u64;
    let (data_bricks, redundancy) = match bricks {
        0 => return None,
        _ if text.contains("<REPLICATE") => (Some(1), format!("{bricks} replicas")),
        _ if text.contains("<EC:") || text.contains("<DISPERSE") => (None, format!("erasure code on {bricks} bricks")),
        bricks => (Some(bricks), "none".to_owned()),
    };
    Some(GlusterPlace { data_bricks, redundancy })
}

/// `PATH: VALUE`, as mfsgetgoal and mfsgetsclass print it. The path may contain colons.
pub(super) fn moosefs_value(text: &str) -> Option<String> {
    let (_, value) = text.lines().next()?.rsplit_once(": ")?;
    // A storage class may be in quotes.
    Some(value.trim().trim_matches('\'').to_owned()).filter(|value| !value.is_empty())
}

/// Chunk servers with valid copies in the output of mfsfileinfo.
pub(super) fn moosefs_servers(text: &str) -> Vec<String> {
    let mut servers: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| line.starts_with("copy ") && line.contains("status:VALID")) {
        let address = line.split_once(": ").and_then(|(_, rest)| rest.split([':', ' ']).next());
        let server = address.unwrap_or_default().to_owned();
        if !server.is_empty() && !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// Layout of a file of Lustre: one or several components.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LustreLayout {
    pub(super) sizes: Vec<u64>,
    /// -1: all targets.
    pub(super) counts: Vec<i64>,
    pub(super) mirrors: u64,
}

impl LustreLayout {
    pub(super) fn sizes_text(&self) -> String {
        composite(self.sizes.iter().map(|bytes| format_size(*bytes)).collect())
    }

    pub(super) fn counts_text(&self) -> String {
        let text = |count: &i64| if *count < 0 { "all targets".to_owned() } else { count.to_string() };
        composite(self.counts.iter().map(text).collect())
    }

    pub(super) fn one_size(&self) -> Option<u64> {
        self.sizes.first().copied().filter(|first| self.sizes.iter().all(|bytes| bytes == first))
    }

    pub(super) fn one_count(&self) -> Option<u64> {
        let first = self.counts.first().filter(|first| self.counts.iter().all(|count| count == *first))?;
        u64::try_from(*first).ok()
    }
}

/// One text for equal components, else that of each in the order of the file.
fn composite(mut texts: Vec<String>) -> String {
    let first = texts.first().cloned().unwrap_or_default();
    if texts.iter().all(|text| *text == first) {
        texts.truncate(1);
    }
    texts.join(", then ")
}

/// Output of `lfs getstripe FILE`.
pub(super) fn lustre_getstripe(text: &str) -> Option<LustreLayout> {
    let sizes: Vec<u64> = line_values(text, "lmm_stripe_size").filter_map(|value| value.parse().ok()).collect();
    let counts: Vec<i64> = line_values(text, "lmm_stripe_count").filter_map(|value| value.parse().ok()).collect();
    let mirrors = line_value(text, "lcm_mirror_count").and_then(|value| value.parse().ok()).unwrap_or(1);
    (!sizes.is_empty() && !counts.is_empty()).then_some(LustreLayout { sizes, counts, mirrors })
}

/// Extended attribute `lustre.lov`: magic, pattern, object id (16 bytes), stripe size, stripe count (16 bits). None if it has several
/// components.
pub(super) fn lustre_attribute(bytes: &[u8]) -> Option<LustreLayout> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !LOV_MAGICS.contains(&word(0)?) {
        return None;
    }
    let count = u16::from_le_bytes(bytes.get(28..30)?.try_into().ok()?);
    let count = if count == u16::MAX { -1 } else { i64::from(count) };
    Some(LustreLayout { sizes: vec![u64::from(word(24)?)], counts: vec![count], mirrors: 1 })
}

/// Targets in the output of `lfs osts DIRECTORY`.
pub(super) fn lustre_targets(text: &str) -> u64 {
    text.lines().filter(|line| line.contains("_UUID")).count() as u64
}

/// An entry of BeeGFS.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BeegfsEntry {
    pub(super) kind: String,
    pub(super) chunk_bytes: Option<u64>,
    pub(super) targets: Option<u64>,
}

/// Output of `beegfs-ctl --getentryinfo FILE`.
pub(super) fn beegfs_entry(text: &str) -> Option<BeegfsEntry> {
    let kind = line_value(text, "+ Type")?.to_owned();
    let chunk_bytes = line_value(text, "+ Chunksize").and_then(|value| parse_size(value).ok());
    // `desired: 4; actual: 4`, or `desired: 4` for a directory.
    let number = line_values(text, "+ Number of storage targets").next();
    let part = |name: &str| number?.split(';').find_map(|part| part.trim().strip_prefix(name)?.trim().parse().ok());
    Some(BeegfsEntry { kind, chunk_bytes, targets: part("actual:").or_else(|| part("desired:")) })
}

/// Value of a flag in the output of mmlsfs: ` -B                 4194304                  Block size`. The values of storage pools of
/// different kinds follow each other; the last one is that of the data.
pub(super) fn mmlsfs_flag(text: &str, flag: &str) -> Option<String> {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let begin = lines.iter().position(|words| words.first() == Some(&flag))?;
    let further =
        lines[begin + 1..].iter().take_while(|words| words.first().is_some_and(|word| !word.starts_with('-')));
    let own = lines[begin].get(1).copied();
    let last = further.filter_map(|words| words.first().copied().filter(|word| word.parse::<u64>().is_ok())).last();
    last.or(own).map(str::to_owned)
}
