//! CPU caches of this process, and the share of one rank.
//!
//! Memory that a rank accesses cyclically is cache-cold if it exceeds the rank's share of the caches. A last-level cache is shared: the
//! share is its size divided by the ranks on its CPUs. A rank allowed on several caches counts for a fraction in each, so unbound ranks
//! have equal shares of all caches. If there are more ranks than CPUs, they are time-shared, and one time slice may be long enough to
//! replace a whole share: at most as many ranks count as can run at once. Private caches of a core are added, because some processors
//! keep data in them that is not in the last level.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{names_in, read_number, read_trimmed};

/// Assumed size of the last-level cache where /sys does not report it (some virtual machines and ARM boards). Larger than most, because
/// it is used to exceed the cache.
pub const ASSUMED_LAST_LEVEL_CACHE_BYTES: u64 = 32 << 20;

/// Caches of the CPUs allowed to one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// Data caches below the last level, of the first allowed CPU.
    near_bytes: u64,
    /// Last-level caches of the allowed CPUs; empty if unknown.
    last: Vec<LastLevel>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastLevel {
    /// Its CPUs, as listed by the kernel; identifies the cache on its host.
    cpus: String,
    bytes: u64,
    allowed: BTreeSet<u32>,
}

impl Caches {
    /// Reads the caches of these CPUs of this host.
    #[must_use]
    pub fn of(allowed: &[u32]) -> Self {
        Self::read_from(Path::new("/sys/devices/system/cpu"), allowed)
    }

    fn read_from(root: &Path, allowed: &[u32]) -> Self {
        let mut all = Self::default();
        let mut left: BTreeSet<u32> = allowed.iter().copied().collect();
        while let Some(&cpu) = left.first() {
            let mut caches = data_caches(&root.join(format!("cpu{cpu}/cache")));
            let Some((_, bytes, cpus)) = caches.pop() else {
                // One unknown cache makes the shares of the others wrong.
                return Self::default();
            };
            if all.last.is_empty() {
                all.near_bytes = caches.iter().map(|(_, bytes, _)| bytes).sum();
            }
            let under: BTreeSet<u32> = parse_cpu_list_lossy(&cpus).into_iter().chain([cpu]).collect();
            let (allowed, others) = left.into_iter().partition(|cpu| under.contains(cpu));
            left = others;
            all.last.push(LastLevel { cpus, bytes, allowed });
        }
        all
    }

    /// Number of last-level caches; 0 if unknown.
    #[must_use]
    pub fn instances(&self) -> u64 {
        self.last.len() as u64
    }

    fn allowed_cpu_count(&self) -> f64 {
        self.last.iter().map(|cache| cache.allowed.len()).sum::<usize>() as f64
    }

    /// Fraction of this rank's CPUs that share a cache.
    fn rank_fraction(&self, cache: &LastLevel) -> f64 {
        cache.allowed.len() as f64 / self.allowed_cpu_count()
    }
}

/// Largest share of any of these ranks, which are all ranks of one host, in bytes. A rank with unknown caches has
/// [`ASSUMED_LAST_LEVEL_CACHE_BYTES`] for itself.
#[must_use]
pub fn largest_share_bytes(ranks: &[&Caches]) -> u64 {
    // For each cache, the number of ranks with the same set of its CPUs.
    let mut under: BTreeMap<&str, BTreeMap<&BTreeSet<u32>, f64>> = BTreeMap::new();
    for rank in ranks {
        for cache in &rank.last {
            *under.entry(&cache.cpus).or_default().entry(&cache.allowed).or_default() += rank.rank_fraction(cache);
        }
    }
    let at_once = |cache: &LastLevel| {
        let sets = &under[cache.cpus.as_str()];
        let cpus: BTreeSet<u32> = sets.keys().copied().flatten().copied().collect();
        let of_sets: f64 = sets.iter().map(|(cpus, parts)| parts.min(cpus.len() as f64)).sum();
        // Fewer ranks than caches: a rank uses one at a time.
        of_sets.min(cpus.len() as f64).max(1.0)
    };
    let share = |rank: &&Caches| {
        if rank.last.is_empty() {
            return ASSUMED_LAST_LEVEL_CACHE_BYTES;
        }
        let of = |cache: &LastLevel| rank.rank_fraction(cache) * cache.bytes as f64 / at_once(cache);
        rank.near_bytes + rank.last.iter().map(of).sum::<f64>().ceil() as u64
    };
    ranks.iter().map(share).max().unwrap_or(0)
}

/// Level, size and CPUs of the data caches, sorted by level.
fn data_caches(directory: &Path) -> Vec<(u32, u64, String)> {
    let of = |index: PathBuf| {
        if read_trimmed(index.join("type"))? == "Instruction" {
            return None;
        }
        let level: u32 = read_number(index.join("level"))?;
        Some((
            level,
            parse_kernel_size(&read_trimmed(index.join("size"))?)?,
            read_trimmed(index.join("shared_cpu_list"))?,
        ))
    };
    let mut caches: Vec<_> = names_in(directory).iter().filter_map(|name| of(directory.join(name))).collect();
    caches.sort();
    caches
}

/// Parses a cache size of /sys: a number followed by K or M.
pub fn parse_kernel_size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

/// Numbers of a list such as `0-3,8`; invalid parts are skipped.
fn parse_cpu_list_lossy(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use beff_report::units::MIB;

    /// CPUs in groups of four, each group with 32 MiB, each CPU with 1 MiB of its own.
    fn fake_cache_tree(cpus: u32) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..cpus {
            let first = cpu / 4 * 4;
            let caches = [
                ("1", "32K", "Data", cpu.to_string()),
                ("1", "32K", "Instruction", cpu.to_string()),
                ("2", "992K", "Unified", cpu.to_string()),
                ("3", "32M", "Unified", format!("{first}-{}", first + 3)),
            ];
            for (n, (level, size, kind, shared)) in caches.iter().enumerate() {
                let index = root.path().join(format!("cpu{cpu}/cache/index{n}"));
                fs::create_dir_all(&index).unwrap();
                for (name, text) in [("level", level), ("size", size), ("type", kind), ("shared_cpu_list", &&**shared)]
                {
                    fs::write(index.join(name), format!("{text}\n")).unwrap();
                }
            }
        }
        root
    }

    #[test]
    fn a_cache_is_divided_by_the_ranks_under_it() {
        let root = fake_cache_tree(16);
        let of = |cpus: &[u32]| Caches::read_from(root.path(), cpus);
        let share = |ranks: &[Caches]| largest_share_bytes(&ranks.iter().collect::<Vec<_>>());
        // Bound: alone, two on one cache; the largest share counts.
        assert_eq!(share(&[of(&[0])]), 33 * MIB);
        assert_eq!(share(&[of(&[0]), of(&[1])]), 17 * MIB);
        assert_eq!(share(&[of(&[0]), of(&[1]), of(&[4])]), 33 * MIB);
        // Unbound: all on all caches, but never more than one cache each.
        let anywhere = of(&(0..16).collect::<Vec<_>>());
        assert_eq!(anywhere.instances(), 4);
        assert_eq!(share(&vec![anywhere.clone(); 16]), 9 * MIB);
        assert_eq!(share(&vec![anywhere.clone(); 4]), 33 * MIB);
        assert_eq!(share(std::slice::from_ref(&anywhere)), 33 * MIB);
        // Half of them bound: the others count for a fraction of each cache.
        let mixed: Vec<_> = (0..4).map(|cpu| of(&[cpu])).chain(vec![anywhere; 4]).collect();
        assert!(share(&mixed) < 33 * MIB && share(&mixed) > 17 * MIB, "{}", share(&mixed));
    }

    #[test]
    fn time_shared_ranks_have_the_cache_alone_while_they_run() {
        let root = fake_cache_tree(8);
        let of = |cpus: &[u32]| Caches::read_from(root.path(), cpus);
        let share = |ranks: &[Caches]| largest_share_bytes(&ranks.iter().collect::<Vec<_>>());
        assert_eq!(share(&vec![of(&[0]); 3]), 33 * MIB);
        assert_eq!(share(&vec![of(&[0, 1]); 8]), 17 * MIB);
        assert_eq!(share(&[of(&[0]), of(&[0]), of(&[1]), of(&[1])]), 17 * MIB);
        assert_eq!(share(&vec![of(&[0, 1, 2, 3, 4, 5, 6, 7]); 99]), 9 * MIB);
        let mut crowd = vec![of(&[0]); 7];
        crowd.push(of(&[0, 1, 2, 3]));
        assert_eq!(share(&crowd), 17 * MIB, "seven ranks share one CPU");
        // As many ranks as CPUs, each on its own: none waits.
        assert_eq!(share(&[of(&[0]), of(&[1]), of(&[2]), of(&[3])]), 9 * MIB);
    }

    #[test]
    fn unknown_caches_are_assumed_large() {
        let root = fake_cache_tree(4);
        assert_eq!(Caches::read_from(root.path(), &[0, 9]), Caches::default());
        assert_eq!(largest_share_bytes(&[&Caches::default(); 3]), ASSUMED_LAST_LEVEL_CACHE_BYTES);
        assert_eq!(largest_share_bytes(&[]), 0);
        assert!(largest_share_bytes(&[&Caches::of(&[0])]) > 0);
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_cpu_list_lossy("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpu_list_lossy("x,5"), [5]);
        assert_eq!(parse_cpu_list_lossy(""), [0; 0]);
    }
}
