//! The caches between this process and the memory, and how much of them is one rank's.
//!
//! Memory that a rank walks through in turns is cold if there is more of it than the rank's share of the caches it sits under. A last-level
//! cache is shared: the share of a rank is the cache divided by the ranks under it. A rank that may run under several caches counts
//! under each of them for a part, so ranks that nobody has bound have equal shares of all caches together. More ranks than CPUs take
//! turns, and one turn may be long enough to go through a share: no more count than can run at once. Caches of one core come
//! on top: some processors keep in them what is not in the last level.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{names_in, read_number, read_trimmed};

/// Taken as last-level cache where /sys does not tell its size (some virtual machines and ARM boards). Larger than
/// most, because it is used to keep data out of the cache.
pub const ASSUMED_LAST_LEVEL_CACHE_BYTES: u64 = 32 << 20;

/// What one process sits under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// Data caches in front of the last level, of the first allowed CPU.
    near_bytes: u64,
    /// The last-level caches of the allowed CPUs; empty: the kernel does not tell.
    last: Vec<LastLevel>,
}

/// One last-level cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastLevel {
    /// The CPUs under it, as the kernel lists them: tells it from the others of its host.
    cpus: String,
    bytes: u64,
    /// Which of these CPUs are allowed.
    allowed: BTreeSet<u32>,
}

impl Caches {
    /// Those of these CPUs of this host.
    #[must_use]
    pub fn of(allowed: &[u32]) -> Self {
        Self::below(Path::new("/sys/devices/system/cpu"), allowed)
    }

    fn below(root: &Path, allowed: &[u32]) -> Self {
        let mut all = Self::default();
        let mut left: BTreeSet<u32> = allowed.iter().copied().collect();
        while let Some(&cpu) = left.first() {
            let mut caches = data_caches(&root.join(format!("cpu{cpu}/cache")));
            let Some((_, bytes, cpus)) = caches.pop() else {
                // One that is not known makes the share of the others wrong.
                return Self::default();
            };
            if all.last.is_empty() {
                all.near_bytes = caches.iter().map(|(_, bytes, _)| bytes).sum();
            }
            let under: BTreeSet<u32> = cpus_of(&cpus).into_iter().chain([cpu]).collect();
            let (allowed, others) = left.into_iter().partition(|cpu| under.contains(cpu));
            left = others;
            all.last.push(LastLevel { cpus, bytes, allowed });
        }
        all
    }

    /// How many last-level caches these are; 0: not known.
    #[must_use]
    pub fn instances(&self) -> u64 {
        self.last.len() as u64
    }

    fn allowed(&self) -> f64 {
        self.last.iter().map(|cache| cache.allowed.len()).sum::<usize>() as f64
    }

    /// The part of this rank that is under a cache: of its CPUs.
    fn part(&self, cache: &LastLevel) -> f64 {
        cache.allowed.len() as f64 / self.allowed()
    }
}

/// Largest share of one of these ranks, which are all that run on one host, bytes. Where the caches of a rank are not known it has
/// [`ASSUMED_LAST_LEVEL_CACHE_BYTES`] for itself.
#[must_use]
pub fn share_bytes(ranks: &[&Caches]) -> u64 {
    // By cache, how many ranks may use the same of its CPUs.
    let mut under: BTreeMap<&str, BTreeMap<&BTreeSet<u32>, f64>> = BTreeMap::new();
    for rank in ranks {
        for cache in &rank.last {
            *under.entry(&cache.cpus).or_default().entry(&cache.allowed).or_default() += rank.part(cache);
        }
    }
    let at_once = |cache: &LastLevel| {
        let sets = &under[cache.cpus.as_str()];
        let cpus: BTreeSet<u32> = sets.keys().copied().flatten().copied().collect();
        let of_sets: f64 = sets.iter().map(|(cpus, parts)| parts.min(cpus.len() as f64)).sum();
        // Fewer ranks than caches: a rank sits under one at a time.
        of_sets.min(cpus.len() as f64).max(1.0)
    };
    let share = |rank: &&Caches| {
        if rank.last.is_empty() {
            return ASSUMED_LAST_LEVEL_CACHE_BYTES;
        }
        let of = |cache: &LastLevel| rank.part(cache) * cache.bytes as f64 / at_once(cache);
        rank.near_bytes + rank.last.iter().map(of).sum::<f64>().ceil() as u64
    };
    ranks.iter().map(share).max().unwrap_or(0)
}

/// Level, size and CPUs of the caches that hold data, by level.
fn data_caches(directory: &Path) -> Vec<(u32, u64, String)> {
    let of = |index: PathBuf| {
        if read_trimmed(index.join("type"))? == "Instruction" {
            return None;
        }
        let level: u32 = read_number(index.join("level"))?;
        Some((level, kernel_size(&read_trimmed(index.join("size"))?)?, read_trimmed(index.join("shared_cpu_list"))?))
    };
    let mut caches: Vec<_> = names_in(directory).iter().filter_map(|name| of(directory.join(name))).collect();
    caches.sort();
    caches
}

/// Cache sizes of /sys: a number with K or M behind it.
pub fn kernel_size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

/// The numbers of a list such as `0-3,8`; what is no number is left out.
fn cpus_of(list: &str) -> Vec<u32> {
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

    /// CPUs in groups of four under 32 MiB each, with 1 MiB of their own.
    fn groups(cpus: u32) -> tempfile::TempDir {
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
        let root = groups(16);
        let of = |cpus: &[u32]| Caches::below(root.path(), cpus);
        let share = |ranks: &[Caches]| share_bytes(&ranks.iter().collect::<Vec<_>>());
        // Bound: alone, two under one, the least crowded counts.
        assert_eq!(share(&[of(&[0])]), 33 * MIB);
        assert_eq!(share(&[of(&[0]), of(&[1])]), 17 * MIB);
        assert_eq!(share(&[of(&[0]), of(&[1]), of(&[4])]), 33 * MIB);
        // Unbound: all of them over all caches, but never more than one.
        let anywhere = of(&(0..16).collect::<Vec<_>>());
        assert_eq!(anywhere.instances(), 4);
        assert_eq!(share(&vec![anywhere.clone(); 16]), 9 * MIB);
        assert_eq!(share(&vec![anywhere.clone(); 4]), 33 * MIB);
        assert_eq!(share(std::slice::from_ref(&anywhere)), 33 * MIB);
        // Half of them bound: the others sit under each cache for a part.
        let mixed: Vec<_> = (0..4).map(|cpu| of(&[cpu])).chain(vec![anywhere; 4]).collect();
        assert!(share(&mixed) < 33 * MIB && share(&mixed) > 17 * MIB, "{}", share(&mixed));
    }

    #[test]
    fn ranks_that_take_turns_have_the_cache_for_themselves_in_their_turn() {
        let root = groups(8);
        let of = |cpus: &[u32]| Caches::below(root.path(), cpus);
        let share = |ranks: &[Caches]| share_bytes(&ranks.iter().collect::<Vec<_>>());
        assert_eq!(share(&vec![of(&[0]); 3]), 33 * MIB);
        assert_eq!(share(&vec![of(&[0, 1]); 8]), 17 * MIB);
        assert_eq!(share(&[of(&[0]), of(&[0]), of(&[1]), of(&[1])]), 17 * MIB);
        assert_eq!(share(&vec![of(&[0, 1, 2, 3, 4, 5, 6, 7]); 99]), 9 * MIB);
        let mut crowd = vec![of(&[0]); 7];
        crowd.push(of(&[0, 1, 2, 3]));
        assert_eq!(share(&crowd), 17 * MIB, "seven take turns on one CPU");
        // As many as CPUs, each with its own: nobody waits.
        assert_eq!(share(&[of(&[0]), of(&[1]), of(&[2]), of(&[3])]), 9 * MIB);
    }

    #[test]
    fn caches_that_are_not_known_are_taken_as_large() {
        let root = groups(4);
        assert_eq!(Caches::below(root.path(), &[0, 9]), Caches::default());
        assert_eq!(share_bytes(&[&Caches::default(); 3]), ASSUMED_LAST_LEVEL_CACHE_BYTES);
        assert_eq!(share_bytes(&[]), 0);
        assert!(share_bytes(&[&Caches::of(&[0])]) > 0);
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus_of("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpus_of("x,5"), [5]);
        assert_eq!(cpus_of(""), [0; 0]);
    }
}
