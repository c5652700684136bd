# SPDX-License-Identifier: Apache-2.0
"""The parts of `make gpu-check` that need no GPU."""

import os
import stat
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import check  # noqa: E402
import smi  # noqa: E402
from table import Result, Start, probe_table, workload_table  # noqa: E402

H100 = "NVIDIA H100 80GB HBM3, 81559, 570.86.15, 9.0, Disabled\n"
A100_MIG = "NVIDIA A100-SXM4-40GB, 40960, 535.183.01, 8.0, Enabled\n"
LISTED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)
  MIG 1g.5gb      Device  0: (UUID: MIG-1)
  MIG 1g.5gb      Device  1: (UUID: MIG-2)
  MIG 3g.20gb     Device  2: (UUID: MIG-3)
"""


def facts(**changed):
    return {"gpuType": "nvidia/h100-80gb-hbm3/sm_90", "deviceCount": 2,
            "driverVersion": "570.86.15", "gpuMemoryBytes": 81559 * 2**20, **changed}


def test_query_is_parsed():
    (gpu,) = smi.parse_query(H100)
    assert gpu == smi.Gpu("NVIDIA H100 80GB HBM3", 81559, "570.86.15", "9.0", has_mig=False)
    assert smi.parse_query(A100_MIG)[0].has_mig
    assert smi.parse_query("\n") == []


@pytest.mark.parametrize("text", ["a, b", "NVIDIA L4, much, 1, 8.9, [N/A]", "x,1,2,3,4,5"])
def test_unexpected_output_is_an_error(text):
    with pytest.raises(ValueError, match="unexpected line"):
        smi.parse_query(text)


def test_mig_profiles_are_listed():
    assert smi.parse_mig_profiles(LISTED) == ["1g.5gb", "1g.5gb", "3g.20gb"]
    assert smi.parse_mig_profiles("GPU 0: NVIDIA L4 (UUID: GPU-1)\n") == []


def test_equal_machines_agree():
    rows = smi.compare(smi.parse_query(H100 * 2), [], facts())
    assert [row.fact for row in rows] == [
        "GPU type", "devices", "driver", "memory of one GPU (MiB)"]
    assert all(row.agrees for row in rows)


@pytest.mark.parametrize(("changed", "fact"), [
    ({"gpuType": "cpu"}, "GPU type"),
    ({"deviceCount": 1}, "devices"),
    ({"driverVersion": ""}, "driver"),
    ({"gpuMemoryBytes": 1}, "memory of one GPU (MiB)"),
])
def test_every_difference_is_a_row(changed, fact):
    rows = smi.compare(smi.parse_query(H100 * 2), [], facts(**changed))
    assert [row.fact for row in rows if not row.agrees] == [fact]
    assert "**no**" in probe_table(rows)


def test_mig_instances_are_the_devices():
    kinds = ["nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb", "nvidia/a100-sxm4-40gb/sm_80/mig-3g.20gb"]
    rows = smi.compare(smi.parse_query(A100_MIG), smi.parse_mig_profiles(LISTED),
                       facts(gpuType="mixed", gpuKinds=kinds, deviceCount=3,
                             driverVersion="535.183.01"))
    assert all(row.agrees for row in rows)


def test_warm_means_that_nothing_was_compiled():
    def result(cold, warm):
        return Result("w", "c", Start(*cold), Start(*warm))

    assert result((0, 3, 9.0), (3, 0, 1.0)).is_warm
    assert not result((0, 3, 9.0), (2, 1, 1.0)).is_warm
    assert not result((0, 3, 9.0), (0, 0, 1.0)).is_warm
    assert not result((3, 0, 9.0), (3, 0, 1.0)).is_warm
    text = workload_table([result((0, 3, 9.0), (3, 0, 1.0)), result((0, 3, 9.0), (2, 1, 1.5))])
    assert text.splitlines()[2] == "| w | c | 0 / 3 | 9.00 | 3 / 0 | 1.00 | yes |"
    assert text.splitlines()[3] == "| w | c | 0 / 3 | 9.00 | 2 / 1 | 1.50 | **no** |"


def program(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_machine_without_nvidia_smi_ends_with_code_2(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.main([]) == 2
    assert capsys.readouterr().err == "gpu-check: not run: nvidia-smi is not installed\n"


@pytest.mark.parametrize(("text", "reason"), [
    ("#!/bin/sh\necho 'No devices were found'\nexit 6\n",
     "nvidia-smi failed: No devices were found"),
    ("#!/bin/sh\nexit 9\n", "nvidia-smi failed: no output"),
    ("#!/bin/sh\nexit 0\n", "nvidia-smi lists no GPU"),
])
def test_machine_without_driver_ends_with_code_2(text, reason, tmp_path, monkeypatch, capsys):
    program(tmp_path, "nvidia-smi", text)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert check.main([]) == 2
    assert capsys.readouterr().err == f"gpu-check: not run: {reason}\n"


def test_both_starts_use_one_path_and_the_second_a_fresh_directory(tmp_path):
    # In place of `cachewarm run`: notes the directory, and whether it exists at the start.
    log = tmp_path / "log"
    fake = program(tmp_path, "cachewarm", f"""#!/bin/sh
while [ "$1" != --dir ]; do shift; done
echo "$2 $(test -e "$2" && echo filled || echo fresh)" >> {log}
mkdir "$2"
echo noise
echo '{{"counter": "c", "hits": 1, "misses": 2, "seconds": 0.5}}'
""")
    result = check.measure(fake, "w", ["true"])
    assert result == Result("w", "c", Start(1, 2, 0.5), Start(1, 2, 0.5))
    first, second = log.read_text().splitlines()
    assert first == second
    assert first.endswith(" fresh")


def test_failing_workload_is_an_error(tmp_path):
    fake = program(tmp_path, "cachewarm", "#!/bin/sh\necho no CUDA >&2\nexit 3\n")
    with pytest.raises(RuntimeError, match="exit code 3: no CUDA"):
        check.measure(fake, "w", ["true"])


def test_workloads_are_valid_python():
    scripts = sorted(check.WORKLOADS.glob("*.py"))
    assert [script.stem for script in scripts] == ["inductor", "ptx_jit", "triton_kernel"]
    for script in scripts:
        compile(script.read_text(), str(script), "exec")
