//! Which hints of the file apply to which open and which pattern.

use super::{PatternSpec, Role};
use crate::b_eff_io::hints::{HintRule, HintScope};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;

fn is_for(rule: &HintRule, ranks: u64, access: AccessMethod, t: PatternType) -> bool {
    rule.ranks.is_none_or(|r| r == ranks)
        && rule.access.is_none_or(|a| a == access)
        && rule.pattern_type.is_none_or(|p| p == t)
}

fn is_for_chunk(rule: &HintRule, spec: &PatternSpec, m_part_bytes: u64) -> bool {
    let sized = spec.role != Role::FillUp;
    match rule.place {
        HintScope::OnOpen => false,
        HintScope::All => true,
        HintScope::Lmax => sized && spec.chunk_bytes == m_part_bytes,
        HintScope::ChunkBytes(bytes) => sized && spec.chunk_bytes == bytes,
    }
}

/// Hints for opening the file of type `t`: key and value, each key once, in order of first occurrence.
#[must_use]
pub fn for_open(rules: &[HintRule], ranks: u64, access: AccessMethod, t: PatternType) -> Vec<(String, String)> {
    let at_open = |r: &&HintRule| matches!(r.place, HintScope::OnOpen | HintScope::All);
    last_wins(rules.iter().filter(at_open).filter(|r| is_for(r, ranks, access, t)))
}

/// Hints for one pattern of type `t`, set before it starts: key and value, each key once, in order of first occurrence.
#[must_use]
pub fn for_pattern(
    rules: &[HintRule],
    ranks: u64,
    access: AccessMethod,
    t: PatternType,
    spec: &PatternSpec,
    m_part_bytes: u64,
) -> Vec<(String, String)> {
    let fits = |r: &&HintRule| is_for(r, ranks, access, t) && is_for_chunk(r, spec, m_part_bytes);
    last_wins(rules.iter().filter(fits))
}

fn last_wins<'a>(rules: impl Iterator<Item = &'a HintRule>) -> Vec<(String, String)> {
    let mut hints: Vec<(String, String)> = Vec::new();
    for rule in rules {
        match hints.iter_mut().find(|(key, _)| *key == rule.key) {
            Some((_, value)) => value.clone_from(&rule.value),
            None => hints.push((rule.key.clone(), rule.value.clone())),
        }
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::hints::parse;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::frame::units::MIB;

    const FILE: &str = "# comment\n\
        \n\
        all all all on_open cb_nodes 4\n\
        all write scatter 1024 cb_buffer_size 4194304   \n\
        8   write scatter 1024 cb_buffer_size 8388608\n\
        all read all all romio_cb_read enable\r\n\
        all all shared Lmax access_style write_once, read_mostly\n";

    fn pairs(hints: &[(String, String)]) -> Vec<(&str, &str)> {
        hints.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
    }

    #[test]
    fn keys_go_where_the_chunk_size_says() {
        let rules = parse(FILE).unwrap();
        let specs = patterns(4 * MIB);
        assert_eq!(rules.len(), 5);
        let pattern =
            |ranks, access, n: usize| for_pattern(&rules, ranks, access, specs[n].pattern_type, &specs[n], 4 * MIB);
        assert_eq!(pairs(&for_open(&rules, 4, AccessMethod::Write, PatternType::Scatter)), [("cb_nodes", "4")]);
        assert_eq!(
            pairs(&for_open(&rules, 4, AccessMethod::Read, PatternType::Scatter)),
            [("cb_nodes", "4"), ("romio_cb_read", "enable")]
        );
        assert_eq!(pairs(&pattern(4, AccessMethod::Write, 5)), [("cb_buffer_size", "4194304")]);
        assert_eq!(pairs(&pattern(8, AccessMethod::Write, 5)), [("cb_buffer_size", "8388608")]);
        assert_eq!(pairs(&pattern(8, AccessMethod::Write, 4)), []);
        assert_eq!(pairs(&pattern(8, AccessMethod::Read, 33)), [("romio_cb_read", "enable")]);
        assert_eq!(pairs(&pattern(2, AccessMethod::Write, 10)), [("access_style", "write_once, read_mostly")]);
        assert_eq!(pairs(&pattern(2, AccessMethod::Write, 11)), []);
    }

    #[test]
    fn a_fill_up_has_no_size_of_its_own() {
        let rules = parse("all all all 32768 k v\nall all all Lmax k v").unwrap();
        for bytes in [32768, 4 * MIB] {
            let fill_up = PatternSpec { chunk_bytes: bytes, call_bytes: bytes, ..patterns(4 * MIB)[33] };
            assert!(for_pattern(&rules, 1, AccessMethod::Write, PatternType::Segmented, &fill_up, 4 * MIB).is_empty());
        }
    }
}
