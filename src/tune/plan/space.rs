//! Keys and values to try, by what each key does to the work.

use beff_backends::default_aggregators;
use beff_tuning::trial::Factor;

use crate::frame::records::AccessMethod;
use crate::frame::units::MIB;

/// File systems whose files have stripes that hints determine.
const STRIPED: [&str; 6] = ["lustre", "gpfs", "beegfs", "fhgfs", "panfs", "pvfs2"];

/// Library or backend that interprets the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// ROMIO: MPICH and its relatives.
    Romio,
    /// OMPIO: Open MPI.
    Ompio,
    /// io_uring.
    Uring,
    /// POSIX.
    Posix,
    /// Another one, without keys that this program knows.
    Other,
}

/// Facts on which the values depend.
#[derive(Clone, Debug)]
pub struct SpaceFacts<'a> {
    /// Interpreter of the keys.
    pub interpreter: Interpreter,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern types; empty: a recording, which may contain any call.
    pub types: &'a [u8],
    /// Ranks.
    pub ranks: u64,
    /// Hosts.
    pub hosts: u64,
    /// Memory of a rank.
    pub memory_per_rank_bytes: u64,
    /// Type of the file system.
    pub fs_type: &'a str,
    /// Hints of the default, as the library lists them.
    pub default_hints: &'a [(String, String)],
}

impl SpaceFacts<'_> {
    fn has_type(&self, numbers: &[u8]) -> bool {
        self.types.is_empty() || self.types.iter().any(|number| numbers.contains(number))
    }

    fn is_collective(&self) -> bool {
        self.has_type(&[0, 1, 4])
    }

    /// Types 0 with its file view of several chunks for each call.
    fn is_noncontiguous(&self) -> bool {
        self.has_type(&[0])
    }

    fn writes(&self) -> bool {
        self.types.is_empty() || self.access != AccessMethod::Read
    }

    fn reads(&self) -> bool {
        self.types.is_empty() || self.access == AccessMethod::Read
    }

    fn default_of(&self, key: &str) -> Option<&str> {
        self.default_hints.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
    }
}

/// A key with its values, and why it is not tried if it cannot matter.
struct Candidate {
    key: &'static str,
    values: Vec<String>,
    obstacle: Option<&'static str>,
}

fn candidate(
    key: &'static str,
    values: impl IntoIterator<Item = impl ToString>,
    rules: &[(bool, &'static str)],
) -> Candidate {
    let values = values.into_iter().map(|value| value.to_string()).collect();
    Candidate { key, values, obstacle: rules.iter().find(|(allowed, _)| !allowed).map(|(_, reason)| *reason) }
}

const NO_COLLECTIVE: &str = "the work has no collective calls";
const NO_WRITES: &str = "the work does not write";
const NO_READS: &str = "the work does not read";
const NO_HOLES: &str = "each call accesses one contiguous range";
const ONE_RANK: &str = "there is one rank";
const NO_OPTION: &str = "a replay has no such option";
const NO_LUSTRE: &str = "the file system is not Lustre";
const NO_STRIPES: &str = "the file system has no stripes that hints determine";

/// Factors in the order in which they are tried, and the keys that are not, with the reason.
#[must_use]
pub fn known_factors(facts: &SpaceFacts<'_>) -> (Vec<Factor>, Vec<(String, String)>) {
    let all = match facts.interpreter {
        Interpreter::Romio => romio(facts),
        Interpreter::Ompio => ompio(facts),
        Interpreter::Uring => [uring(facts), two_phase(facts)].into_iter().flatten().collect(),
        Interpreter::Posix => [posix(), two_phase(facts)].into_iter().flatten().collect(),
        Interpreter::Other => Vec::new(),
    };
    let (mut factors, mut omitted) = (Vec::new(), Vec::new());
    for Candidate { key, mut values, obstacle } in all {
        values.retain(|value| facts.default_of(key) != Some(value));
        match obstacle {
            Some(reason) => omitted.push((key.to_owned(), reason.to_owned())),
            None if values.is_empty() => omitted.push((key.to_owned(), "its only value is the default".to_owned())),
            None => factors.push(Factor { key: key.to_owned(), values }),
        }
    }
    (factors, omitted)
}

/// Numbers of aggregators that make sense.
fn aggregators(facts: &SpaceFacts<'_>) -> Vec<u64> {
    let mut all = Vec::new();
    for number in [facts.hosts, 2 * facts.hosts, facts.ranks, 1] {
        if number <= facts.ranks && !all.contains(&number) {
            all.push(number);
        }
    }
    all
}

/// Sizes of collective buffers, at most an eighth of the memory of a rank.
fn buffer_sizes(facts: &SpaceFacts<'_>) -> Vec<u64> {
    [64 * MIB, MIB].into_iter().filter(|bytes| *bytes <= facts.memory_per_rank_bytes / 8).collect()
}

fn romio(facts: &SpaceFacts<'_>) -> Vec<Candidate> {
    let collective = (facts.is_collective(), NO_COLLECTIVE);
    let (writes, reads) = ((facts.writes(), NO_WRITES), (facts.reads(), NO_READS));
    let holes = (facts.is_noncontiguous(), NO_HOLES);
    let striped = (STRIPED.iter().any(|name| facts.fs_type.contains(name)), NO_STRIPES);
    let lustre = (facts.fs_type.contains("lustre"), NO_LUSTRE);
    vec![
        candidate("romio_cb_write", ["disable", "enable"], &[writes, collective]),
        candidate("romio_cb_read", ["disable", "enable"], &[reads, collective]),
        candidate("cb_nodes", aggregators(facts), &[collective, (facts.ranks > 1, ONE_RANK)]),
        candidate("cb_buffer_size", buffer_sizes(facts), &[collective]),
        candidate("romio_ds_write", ["disable", "enable"], &[writes, holes]),
        candidate("romio_ds_read", ["disable", "enable"], &[reads, holes]),
        candidate("romio_no_indep_rw", ["true"], &[collective]),
        candidate("ind_wr_buffer_size", [4 * MIB], &[writes, holes]),
        candidate("ind_rd_buffer_size", [16 * MIB], &[reads, holes]),
        candidate("striping_factor", [4, 16], &[striped]),
        candidate("striping_unit", [MIB, 16 * MIB], &[striped]),
        candidate("romio_lustre_co_ratio", [2, 4], &[lustre, collective]),
        candidate("romio_lustre_coll_threshold", [MIB], &[lustre, collective]),
        candidate("romio_lustre_ds_in_coll", ["disable"], &[lustre, collective, writes]),
    ]
}

fn ompio(facts: &SpaceFacts<'_>) -> Vec<Candidate> {
    let collective = (facts.is_collective(), NO_COLLECTIVE);
    let striped = (STRIPED.iter().any(|name| facts.fs_type.contains(name)), NO_STRIPES);
    vec![
        candidate("cb_nodes", aggregators(facts), &[collective, (facts.ranks > 1, ONE_RANK)]),
        candidate("cb_buffer_size", buffer_sizes(facts), &[collective]),
        candidate("collective_buffering", ["false", "true"], &[collective]),
        candidate("striping_factor", [4, 16], &[striped]),
        candidate("striping_unit", [MIB, 16 * MIB], &[striped]),
    ]
}

fn uring(facts: &SpaceFacts<'_>) -> Vec<Candidate> {
    let patterns = (!facts.types.is_empty(), NO_OPTION);
    let new_files = (facts.access == AccessMethod::Write, "the files exist already");
    vec![
        candidate("depth", [64, 8, 256], &[patterns]),
        candidate("direct", ["off"], &[]),
        candidate("preallocate", ["off", "native"], &[patterns, new_files]),
    ]
}

fn posix() -> Vec<Candidate> {
    vec![candidate("direct", ["auto"], &[])]
}

fn two_phase(facts: &SpaceFacts<'_>) -> Vec<Candidate> {
    let patterns = (!facts.types.is_empty(), NO_OPTION);
    let rules = [patterns, (facts.has_type(&[0, 1, 4]), NO_COLLECTIVE), (facts.ranks > 1, ONE_RANK)];
    let by_default = default_aggregators(facts.ranks, facts.hosts);
    vec![
        candidate("collective", ["two-phase", "independent"], &rules),
        candidate("aggregators", aggregators(facts).into_iter().filter(|n| *n != by_default), &rules),
        candidate("domain", ["16M", "1M"], &rules),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(interpreter: Interpreter, types: &'a [u8], access: AccessMethod) -> SpaceFacts<'a> {
        SpaceFacts {
            interpreter,
            access,
            types,
            ranks: 8,
            hosts: 2,
            memory_per_rank_bytes: 1 << 30,
            fs_type: "ext4",
            default_hints: &[],
        }
    }

    fn keys(facts: &SpaceFacts<'_>) -> String {
        let (factors, _) = known_factors(facts);
        factors.iter().map(|factor| factor.key.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_keys_that_can_matter_are_tried() {
        let romio = |types: &'static [u8], access| keys(&facts(Interpreter::Romio, types, access));
        assert_eq!(
            romio(&[0], AccessMethod::Write),
            "romio_cb_write cb_nodes cb_buffer_size romio_ds_write romio_no_indep_rw ind_wr_buffer_size"
        );
        assert_eq!(
            romio(&[0], AccessMethod::Read),
            "romio_cb_read cb_nodes cb_buffer_size romio_ds_read romio_no_indep_rw ind_rd_buffer_size"
        );
        assert_eq!(romio(&[4], AccessMethod::Write), "romio_cb_write cb_nodes cb_buffer_size romio_no_indep_rw");
        assert_eq!(romio(&[2], AccessMethod::Write), "");
        assert!(romio(&[], AccessMethod::Write).contains("romio_ds_read"), "a recording may do anything");
        let lustre = SpaceFacts { fs_type: "lustre", ..facts(Interpreter::Romio, &[2], AccessMethod::Write) };
        assert_eq!(keys(&lustre), "striping_factor striping_unit");
        let (_, omitted) = known_factors(&facts(Interpreter::Romio, &[2], AccessMethod::Write));
        assert!(omitted.contains(&("cb_nodes".into(), NO_COLLECTIVE.into())), "{omitted:?}");
    }

    #[test]
    fn values_fit_the_machine_and_differ_from_the_default() {
        let defaults = [("cb_nodes".to_owned(), "2".to_owned())];
        let small = SpaceFacts {
            memory_per_rank_bytes: 64 << 20,
            default_hints: &defaults,
            ..facts(Interpreter::Romio, &[4], AccessMethod::Write)
        };
        let (factors, _) = known_factors(&small);
        let values = |key: &str| factors.iter().find(|f| f.key == key).map(|f| f.values.join(" "));
        assert_eq!(values("cb_nodes"), Some("4 8 1".into()));
        assert_eq!(values("cb_buffer_size"), Some("1048576".into()));
        let alone = SpaceFacts { ranks: 1, hosts: 1, ..small };
        assert!(!keys(&alone).contains("cb_nodes"));
        let two_phase = |hosts| {
            let facts = SpaceFacts { hosts, ..facts(Interpreter::Posix, &[4], AccessMethod::Write) };
            let (factors, _) = known_factors(&facts);
            factors.into_iter().find(|f| f.key == "aggregators").map(|f| f.values.join(" "))
        };
        assert_eq!(two_phase(1), Some("1 2".into()), "all 8 ranks are the default");
        assert_eq!(two_phase(2), Some("4 8 1".into()), "2 of 2 hosts are the default");
    }
}
