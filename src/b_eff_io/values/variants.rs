//! Comparison of each variant with its backend: the ratio of their rates, of each type and of all types together.

use super::ladder::{type_ratio, BackendTypeRecords, ComparedBackend, VariantComparison};
use super::repetitions::RepetitionIndex;
use super::totals::{TypeRecordIndex, TypeRecords};
use super::verified_words::VerifiedWords;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::RunResult;
use crate::frame::backends::backend_of;
use crate::frame::records::AccessMethod;

/// Compares every variant whose backend was measured.
pub(super) fn variants<'a>(result: &'a RunResult, index: &TypeRecordIndex<'a>) -> Vec<VariantComparison> {
    let repetitions = RepetitionIndex::new(result);
    let mut all = Vec::new();
    for variant in result.config.variants.iter().map(|variant| variant.backend.as_str()) {
        // Locations found in repetitions and in other orders are recorded, too.
        let places = result.corruptions.iter().filter(|c| c.backend == variant).count() as u64;
        let wrong_words = VerifiedWords::wrong_of(result, variant).max(places);
        for ranks in result.partitions.iter().map(|p| p.ranks) {
            for access in AccessMethod::ALL {
                let pair = [variant, backend_of(variant)];
                let types =
                    result.config.types.iter().map(|t| (*t, pair.map(|name| index.of(name, ranks, access, *t))));
                let types: Vec<(PatternType, [TypeRecords<'a>; 2])> = types.collect();
                let compare = |pattern_type, records| VariantComparison {
                    ranks,
                    access,
                    pattern_type,
                    wrong_words,
                    ..comparison(pair, records, &repetitions)
                };
                let is_measured = |records: &TypeRecords<'_>| records.patterns.iter().any(|p| p.calls > 0);
                let both = types.iter().filter(|(_, records)| records.iter().all(is_measured));
                let whole = both.fold([(); 2].map(|()| TypeRecords::empty()), |mut sum, (_, records)| {
                    sum.iter_mut().zip(records).for_each(|(sum, of_type)| sum.add(of_type));
                    sum
                });
                all.push(compare(None, whole));
                all.extend(types.into_iter().map(|(t, records)| compare(Some(t), records)));
            }
        }
    }
    all
}

fn comparison<'a>(
    [variant, base]: [&'a str; 2],
    [own, of_base]: [TypeRecords<'a>; 2],
    repetitions: &RepetitionIndex<'_>,
) -> VariantComparison {
    let own = ComparedBackend::total(&BackendTypeRecords { backend: variant, records: own });
    let of_base = ComparedBackend::total(&BackendTypeRecords { backend: base, records: of_base });
    let ratio = own.as_ref().zip(of_base.as_ref());
    let ratio = ratio.and_then(|(own, base)| type_ratio(own, base, &own.samples(base, repetitions)));
    VariantComparison {
        backend: variant.to_owned(),
        base: base.to_owned(),
        ranks: 0,
        access: AccessMethod::Write,
        pattern_type: None,
        mb_per_second: own.and_then(|own| own.rate()),
        ratio,
        wrong_words: 0,
    }
}

#[cfg(test)]
#[path = "variants_tests.rs"]
mod tests;
