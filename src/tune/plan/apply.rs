//! A setting in the forms in which programs take it.

/// Begins a comment in all of these files.
const COMMENT: &str = "# ";

/// Parameters of Open MPI's MCA that have the effect of an info key.
const MCA: [(&str, &str); 2] = [("cb_nodes", "io_ompio_num_aggregators"), ("cb_buffer_size", "io_ompio_bytes_per_agg")];

/// Lines of a comment.
fn comment(text: &str) -> String {
    text.lines().map(|line| format!("{COMMENT}{line}\n")).collect()
}

/// File for `--hints`: these hints for all files and patterns.
#[must_use]
pub fn hints_file(head: &str, hints: &[(String, String)]) -> String {
    comment(head) + &hints.iter().map(|(key, value)| format!("all all all all {key} {value}\n")).collect::<String>()
}

/// File for ROMIO_HINTS.
#[must_use]
pub fn romio_file(head: &str, hints: &[(String, String)]) -> String {
    comment(head) + &hints.iter().map(|(key, value)| format!("{key} {value}\n")).collect::<String>()
}

/// MCA parameter file; keys without a parameter are named in a comment.
#[must_use]
pub fn mca_file(head: &str, hints: &[(String, String)]) -> String {
    let line = |(key, value): &(String, String)| match MCA.iter().find(|(other, _)| other == key) {
        Some((_, parameter)) => format!("{parameter} = {value}\n"),
        None => format!("{COMMENT}no parameter for {key} {value}: set it with MPI_Info_set\n"),
    };
    comment(head) + &hints.iter().map(line).collect::<String>()
}

/// How a program or a launch takes the setting: options of this program, an environment variable, and source text.
#[must_use]
pub fn snippets(head: &str, backend: &str, setting: &[(String, String)], is_hints: bool) -> String {
    let mut text = comment(head);
    if setting.is_empty() {
        return text;
    }
    let pairs: Vec<String> =
        setting.iter().map(|(key, value)| format!("{key}={}", value.replace(',', "\\,"))).collect();
    text += &format!("\nbeff-raw, beside the default:\n  --backend {backend} --variant tuned:{}\n", pairs.join(","));
    if !is_hints {
        let options: Vec<String> = setting.iter().map(|(key, value)| format!("--{key} {value}")).collect();
        return text + &format!("\nbeff-raw, instead of the default:\n  --backend {backend} {}\n", options.join(" "));
    }
    let cray: Vec<String> = setting.iter().map(|(key, value)| format!("{key}={value}")).collect();
    text += &format!("\nCray MPICH, all files:\n  export MPICH_MPIIO_HINTS='*:{}'\n", cray.join(":"));
    let calls = |info: &str| {
        setting
            .iter()
            .map(|(key, value)| format!("  MPI_Info_set({info}, \"{key}\", \"{value}\");\n"))
            .collect::<String>()
    };
    text += &format!(
        "\nC:\n  MPI_Info info;\n  MPI_Info_create(&info);\n{}  MPI_File_open(comm, name, mode, info, &file);\n  MPI_Info_free(&info);\n",
        calls("info")
    );
    text += &format!(
        "\nHDF5:\n  MPI_Info info;\n  MPI_Info_create(&info);\n{}  hid_t access = H5Pcreate(H5P_FILE_ACCESS);\n  \
         H5Pset_fapl_mpio(access, comm, info);\n  MPI_Info_free(&info);\n",
        calls("info")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(text: &str) -> Vec<(String, String)> {
        text.split_whitespace().filter_map(|w| w.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn each_form_contains_the_setting() {
        let setting = hints("cb_nodes=2 romio_cb_write=enable");
        assert_eq!(
            hints_file("tuned", &setting),
            "# tuned\nall all all all cb_nodes 2\nall all all all romio_cb_write enable\n"
        );
        assert_eq!(romio_file("tuned", &setting), "# tuned\ncb_nodes 2\nromio_cb_write enable\n");
        assert_eq!(
            mca_file("tuned", &setting),
            "# tuned\nio_ompio_num_aggregators = 2\n# no parameter for romio_cb_write enable: set it with MPI_Info_set\n"
        );
        let text = snippets("tuned", "mpiio", &setting, true);
        for part in [
            "--variant tuned:cb_nodes=2,romio_cb_write=enable",
            "MPICH_MPIIO_HINTS='*:cb_nodes=2:romio_cb_write=enable'",
            "MPI_Info_set(info, \"cb_nodes\", \"2\");",
            "H5Pset_fapl_mpio(access, comm, info);",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let text = snippets("tuned", "uring", &hints("depth=64"), false);
        assert!(text.contains("--backend uring --depth 64") && !text.contains("MPI_Info"), "{text}");
    }

    #[test]
    fn without_a_setting_the_files_are_comments() {
        for text in [
            hints_file("none", &[]),
            romio_file("none", &[]),
            mca_file("none", &[]),
            snippets("none", "mpiio", &[], true),
        ] {
            assert_eq!(text, "# none\n");
        }
    }
}
