//! A table as data, and then as Markdown or HTML.

use super::html;

/// Columns and rows of text, with a sentence on what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// How many columns from the left are words; the others are figures.
    pub(super) words: usize,
    /// The column with verdicts, and which of its cells are good and which bad.
    pub(super) verdicts: Option<(usize, Vec<Option<bool>>)>,
}

impl Table {
    /// A table whose columns have fixed names.
    pub(super) fn new(caption: String, columns: &[&str], rows: Vec<Vec<String>>, words: usize) -> Self {
        Self {
            caption,
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            rows,
            words,
            verdicts: None,
        }
    }

    /// The same with a column of verdicts, of which a page shows good and bad ones in colour.
    pub(super) fn judged(self, column: usize, verdicts: Vec<Option<bool>>) -> Self {
        Self { verdicts: Some((column, verdicts)), ..self }
    }

    /// As Markdown, the sentence first.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}\n\n{}", self.caption, line(&self.columns));
        for index in 0..self.columns.len() {
            text.push_str(if index < self.words { "|---" } else { "|---:" });
        }
        text.push_str("|\n");
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&line(&cells));
        }
        text
    }

    /// As HTML, without the sentence.
    pub(super) fn html(&self) -> String {
        let verdict = |row: usize, column: usize| {
            let (_, verdicts) = self.verdicts.as_ref().filter(|(judged, _)| *judged == column)?;
            Some(if (*verdicts.get(row)?)? { " class=\"good\"" } else { " class=\"bad\"" })
        };
        let row = |(row, cells): (usize, &Vec<String>)| {
            let cell = |(column, text): (usize, &String)| html::cell("td", verdict(row, column).unwrap_or(""), text);
            cells.iter().enumerate().map(cell).collect()
        };
        let head: String = self.columns.iter().map(|text| html::cell("th", "", text)).collect();
        html::table(&format!(" class=\"words-{}\"", self.words), &head, self.rows.iter().enumerate().map(row))
    }
}
