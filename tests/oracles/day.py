"""The files of a shop's day through programs that share no code with Parcelo.

    python day.py FOLDER

FOLDER holds the files that the test `a_day_from_export_to_a_parcel_held_by_customs` keeps with PARCELO_DAY=FOLDER: the
results of the import, all labels as one file, the invoices, and the list of parcels. Needs zxing-cpp and Pillow; qpdf,
pdftotext and pdftoppm.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import zxingcpp
from PIL import Image


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def rows(file):
    with open(file, newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def page_texts(pdf):
    """The text of each page; a form feed ends a page."""
    return run("pdftotext", "-layout", pdf, "-").stdout.split("\f")[:-1]


def bars(pdf):
    """The barcode on each page, as printed at 203 dots per inch."""
    with tempfile.TemporaryDirectory() as folder:
        run("pdftoppm", "-r", 203, "-mono", pdf, Path(folder) / "page")
        for page in sorted(Path(folder).iterdir()):
            found = zxingcpp.read_barcodes(Image.open(page).convert("L"))
            yield [code.text for code in found if "128" in str(code.format)]


def pdf_faults(pdf):
    checked = run("qpdf", "--check", pdf)
    if checked.returncode:
        yield f"{pdf.name}: qpdf says {checked.stdout}{checked.stderr}"


def label_faults(pdf, numbers):
    yield from pdf_faults(pdf)
    texts = page_texts(pdf)
    if len(texts) != len(numbers):
        yield f"{pdf.name}: {len(texts)} pages for {len(numbers)} orders"
    for page, (number, text, codes) in enumerate(zip(numbers, texts, bars(pdf)), 1):
        if number not in text or codes != [number]:
            yield f"{pdf.name}, page {page}: the barcode is {codes}, not {number}"
        if "José Peña" not in text:
            yield f"{pdf.name}, page {page}: no receiver"


def invoice_faults(folder, numbers):
    for number in numbers:
        pdf = folder / f"invoice-{number}.pdf"
        yield from pdf_faults(pdf)
        text = "".join(page_texts(pdf))
        for wanted in (number, "José Peña", "Cotton shirt", "45.50"):
            if wanted not in text:
                yield f"{pdf.name}: no {wanted}"


def table_faults(folder, numbers):
    listed = rows(folder / "parcels.csv")
    if sorted(row["trackingNumber"] for row in listed) != sorted(numbers):
        yield "parcels.csv: other parcels than the import created"
    for name in ("parcels.csv", "results.csv"):
        for row in rows(folder / name):
            formulas = [cell for cell in row.values() if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
            if formulas:
                yield f"{name}: a spreadsheet would run {formulas}"


def main(folder):
    created = [row for row in rows(folder / "results.csv") if row["outcome"] == "created"]
    numbers = [row["trackingNumber"] for row in created]
    faults = [
        *label_faults(folder / "day.pdf", numbers),
        *invoice_faults(folder / "invoices", numbers),
        *table_faults(folder, numbers),
    ]
    # A file with its first two labels exchanged must be noticed.
    exchanged = [*numbers[1::-1], *numbers[2:]]
    if not numbers or not any(label_faults(folder / "day.pdf", exchanged)):
        faults.append("exchanged labels were not noticed")
    for fault in faults:
        print(fault)
    print(f"{len(numbers)} orders, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
