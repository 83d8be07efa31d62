//! Selection of benchmarks by name: names in any case, lists to include and exclude, suggestions for typos.

use super::benchmark::ImbBenchmark;
use super::catalogue::{all, default_list};
use crate::imb_io::plan::PlanningError;

/// Maximum number of differing letters of a suggested name.
const MAX_TYPO_LETTERS: usize = 3;

/// The benchmark of that name, in any case.
///
/// # Errors
/// [`PlanningError::Argument`] for an unknown name, with the nearest one if there is any; for an empty name.
pub fn find(name: &str) -> Result<&'static ImbBenchmark, PlanningError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(PlanningError::argument("the name of a benchmark is empty"));
    }
    all().iter().find(|benchmark| benchmark.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let guess = nearest(name).map_or_else(String::new, |nearest| format!("; did you mean {}?", nearest.name));
        PlanningError::argument(format!("there is no benchmark '{name}'{guess}"))
    })
}

/// The benchmark with the nearest name.
#[must_use]
pub fn nearest(typed: &str) -> Option<&'static ImbBenchmark> {
    let name = nearest_of(typed, all().iter().map(|benchmark| benchmark.name))?;
    all().iter().find(|benchmark| benchmark.name == name)
}

/// The nearest name: the one with the longest common prefix and suffix, if the differing letters between them are few.
/// Punctuation does not count.
#[must_use]
pub fn nearest_of<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |text: &str| -> Vec<char> {
        text.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let typed = letters(typed);
    // Half of a short name must match.
    let differing = names.into_iter().filter_map(|name| {
        let name_letters = letters(name);
        let differing = differing(&name_letters, &typed);
        (differing <= MAX_TYPO_LETTERS && 2 * differing <= name_letters.len().max(typed.len()))
            .then_some((differing, name))
    });
    differing.min_by_key(|(letters, _)| *letters).map(|(_, name)| name)
}

/// Number of letters between the common prefix and suffix of two words, in the word that has more of them.
fn differing(a: &[char], b: &[char]) -> usize {
    let begin = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let end = a[begin..].iter().rev().zip(b[begin..].iter().rev()).take_while(|(a, b)| a == b).count();
    a.len().max(b.len()) - begin - end
}

/// The benchmarks to run: those of `names`, or [`default_list`] if there are none; then those of `include`, without those of
/// `exclude`, in the given order, without duplicates. An item may contain several names separated by commas.
///
/// # Errors
/// [`PlanningError::Argument`] for an unknown name, or if no benchmark remains.
pub fn select(
    names: &[String],
    include: &[String],
    exclude: &[String],
) -> Result<Vec<&'static ImbBenchmark>, PlanningError> {
    let mut chosen = if names.is_empty() { default_list().iter().collect() } else { find_all(names)? };
    chosen.extend(find_all(include)?);
    let out = find_all(exclude)?;
    let mut selected = Vec::with_capacity(chosen.len());
    for benchmark in chosen {
        if !out.contains(&benchmark) && !selected.contains(&benchmark) {
            selected.push(benchmark);
        }
    }
    if selected.is_empty() {
        return Err(PlanningError::argument("every benchmark named is also excluded; leave at least one"));
    }
    Ok(selected)
}

fn find_all(names: &[String]) -> Result<Vec<&'static ImbBenchmark>, PlanningError> {
    names.iter().flat_map(|item| item.split(',')).map(find).collect()
}

/// The names in the text of an input file, separated by blanks; `#` begins a comment. [`select`] checks them.
#[must_use]
pub fn names_in_text(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        names_in_text(text)
    }

    fn names(names: &str, include: &str, exclude: &str) -> Vec<&'static str> {
        let selected = select(&words(names), &words(include), &words(exclude)).unwrap();
        selected.iter().map(|benchmark| benchmark.name).collect()
    }

    #[test]
    fn names_are_found_as_users_type_them() {
        for (typed, name) in [
            ("S_Write_Indv", "S_Write_Indv"),
            ("s_write_indv", "S_Write_Indv"),
            ("P_READ_PRIV", "P_Read_Priv"),
            (" C_iwrite_Shared ", "C_IWrite_Shared"),
            ("open_close", "Open_Close"),
            ("c_iread_all_expl", "C_IRead_All_Expl"),
        ] {
            assert_eq!(find(typed).unwrap().name, name);
        }
        for benchmark in all() {
            assert_eq!(find(&benchmark.name.to_uppercase()).unwrap(), benchmark);
        }
    }

    #[test]
    fn a_typo_gets_a_suggestion() {
        for (typed, name) in [
            ("S_Wrte_Indv", "S_Write_Indv"),
            ("P_Read_Private", "P_Read_Priv"),
            ("c_write_expl.", "C_Write_Expl"),
            ("P-Write-Shared", "P_Write_Shared"),
            ("openclose", "Open_Close"),
            ("S_Iwrtie_Indv", "S_IWrite_Indv"),
        ] {
            assert_eq!(nearest(typed).map(|b| b.name), Some(name), "{typed}");
            let text = find(typed).unwrap_err().to_string();
            assert!(text.contains(typed) && text.contains(&format!("did you mean {name}?")), "{text}");
        }
        for typed in ["PingPong", "", "Write", "S_"] {
            assert!(!find(typed).unwrap_err().to_string().contains("mean"), "{typed}");
        }
    }

    #[test]
    fn lists_add_up_in_the_order_given() {
        assert_eq!(names("", "", "").len(), 37);
        assert_eq!(names("P_Read_Expl s_write_indv p_read_expl", "", ""), ["P_Read_Expl", "S_Write_Indv"]);
        assert_eq!(names("open_close,P_Read_Expl", "S_Read_Indv", "Open_Close"), ["P_Read_Expl", "S_Read_Indv"]);
        let more = names("", "c_iread_all_indv", "s_write_indv,s_read_indv");
        assert_eq!((more.len(), more[0], more[35]), (36, "S_Write_Expl", "C_IRead_All_Indv"));
        assert!(select(&words("Open_Close"), &[], &words("open_close")).is_err());
        for empty in ["", " ", ",", "Open_Close,", "Open_Close,,S_Read_Indv"] {
            let error = select(&[empty.to_owned()], &[], &[]).unwrap_err().to_string();
            assert!(error.contains("name of a benchmark is empty"), "'{empty}': {error}");
        }
        assert!(select(&[], &[], &words("Opn_Close")).unwrap_err().to_string().contains("mean Open_Close"));
    }

    #[test]
    fn comments_of_a_file_are_no_names() {
        assert_eq!(
            names_in_text("# all\nS_Read_Indv # one\n\n  Open_Close P_Read_Priv\n"),
            ["S_Read_Indv", "Open_Close", "P_Read_Priv"]
        );
    }
}
