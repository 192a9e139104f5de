"""Files that a program both reads and writes, as far as its source names them: by the texts and settings of which their paths are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from trainflash.knobs.effects import writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import given_to, passed
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional, string_value
from trainflash.knobs.reading.whole_files import LOADS, OPENS, for_reading

READS = {*LOADS, "cv2.imread", "h5py.File", "json.load", "PIL.Image.open", "safetensors.torch.load_file", "torchaudio.load"}
OF_PATH = {"exists", "glob", "is_file", "iterdir", "read_bytes", "read_text", "rglob", "stat"}  # methods of a path
LOOKS = {f"os.{name}" for name in ("listdir", "scandir", "stat", "walk")} | {f"os.path.{name}" for name in ("exists", "getmtime", "isfile")}
LOOKS |= {"glob.glob", "glob.iglob"}
WRITES = {
    "joblib.dump", "numpy.save", "numpy.savetxt", "numpy.savez", "numpy.savez_compressed", "os.remove", "os.rename", "os.replace",
    "os.unlink", "safetensors.torch.save_file", "shutil.copy", "shutil.copyfile", "shutil.move", "torch.save",
}  # fmt: skip
WRITE_METHODS = {"savefig", "to_csv", "to_json", "to_parquet", "to_pickle", "unlink", "write_bytes", "write_text"}
DEEPEST = 3  # own: names and functions between a path and its text
LEAST = 3  # letters; what is shorter, or an ending alone, tells no file from another

Place = tuple[PythonFile, cst.Call]


def again(project: Project, reached: Iterable[Function]) -> Place | None:
    """Where others than the functions `reached` write a file that these may read; None where the source shows none."""
    functions = list(reached)
    read = {
        word
        for file, function in functions
        for call in descendants(function.body, cst.Call)
        for path in _read(file, call)  # type: ignore[arg-type]
        for word in _words(project, file, path, 0)
    }
    for file, call in writing(project, functions) if read else ():
        names = {word for path in written(file, call) for word in _words(project, file, path, 0)}
        if read & names or any(word.startswith(f"{each}/") for word in names for each in read):
            return file, call
    return None


def writing(project: Project, but: Iterable[Function]) -> Iterator[Place]:
    """Calls that write, move or take away files, those in the functions `but` left out."""
    functions = list(but)
    for file in project.parsed():
        for call in file.calls:
            inside = any(where is file and file.inside(call, each) for where, each in functions)
            if not inside and next(written(file, call), None) is not None:
                yield file, call


def written(file: PythonFile, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Paths of what a call writes, moves or takes away."""
    full, method = file.full_name(call.func) or "", callees.method_name(call)
    if full in WRITES:
        yield from (arg.value for arg in call.args)
    elif full in OPENS:
        first = positional(call, 0)
        yield from [first.value] if first is not None and not for_reading(call, 1) else []
    elif method == "open" and full.split(".")[0] not in file.imported and not for_reading(call, 0):
        yield call.func.value  # type: ignore[union-attr]
    elif method in WRITE_METHODS and full.split(".")[0] not in file.imported:
        yield from (arg.value for arg in call.args) if method.startswith(("to_", "save")) else [call.func.value]  # type: ignore[union-attr]


def _read(file: PythonFile, call: cst.Call) -> Iterator[cst.BaseExpression]:
    full, method = file.full_name(call.func) or "", callees.method_name(call)
    first = positional(call, 0) or keyword(call, "path")
    if first is not None and (full in READS | LOOKS or (full in OPENS and for_reading(call, 1))):
        yield first.value
    elif method in OF_PATH or (method == "open" and full.split(".")[0] not in file.imported and for_reading(call, 0)):
        yield call.func.value  # type: ignore[union-attr]


def _words(project: Project, file: PythonFile, path: cst.BaseExpression, depth: int) -> Iterator[str]:
    """Texts, and settings such as `args.labels`, of which a path is made."""
    for node in descendants(path, (cst.SimpleString, cst.FormattedStringText)):
        text = string_value(node) if isinstance(node, cst.SimpleString) else node.value  # type: ignore[attr-defined,arg-type]
        text = (text or "").strip("/. ")
        if len(text) >= LEAST and not _is_ending(text, node, file):
            yield text
    for node in descendants(path, (cst.Name, cst.Attribute)):
        up, name = file.parent(node), dotted(node)
        if name is None or isinstance(up, cst.Attribute) or (isinstance(up, cst.Call) and up.func is node):
            continue
        if "." in name and name.split(".")[0] not in ("self", *file.imported):
            yield name
        elif depth < DEEPEST:
            yield from _of_name(project, file, node, name, depth + 1)


def _is_ending(text: str, node: cst.CSTNode, file: PythonFile) -> bool:
    """Whether a text is no more than the kind of a file, such as `.pt`, or a mode."""
    return file.text(node).strip("\"'").startswith(".") or text in writers.REPORTS


def _of_name(project: Project, file: PythonFile, node: cst.CSTNode, name: str, depth: int) -> Iterator[str]:
    """Words of what a variable or a field is given, or a parameter is handed."""
    function = file.function_around(node)
    owner = file.class_around(node) if name.startswith("self.") else function
    own = given_to(owner, name) if owner is not None else []
    for each in own or (given_to(file.module, name) if not name.startswith("self.") else []):
        yield from _words(project, file, each, depth)
    constructor = next((each for each in owner.body.body if _begins(each)), None) if isinstance(owner, cst.ClassDef) else function
    word = dotted(own[0]) if own and isinstance(owner, cst.ClassDef) else name
    for param in descendants(constructor.params, cst.Param) if constructor is not None else ():
        if param.name.value == word:  # type: ignore[attr-defined]
            for where, call in callers.sites(project, file, constructor):  # type: ignore[arg-type]
                handed = passed(where, call, file, constructor, param)  # type: ignore[arg-type]
                if handed is not None:
                    yield from _words(project, where, handed, depth)


def _begins(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef) and node.name.value == "__init__"
