import sys
from glob import glob

from setuptools import find_packages, setup

package_name = "rnea_control"

SIM = ["mujoco>=3.3"]
MOVE = ["ruckig>=0.9"]
DEMO = [*SIM, "matplotlib>=3.5", "rich>=10", "example-robot-data>=4"]
IDENTIFY = ["scipy>=1.8", "clarabel>=0.6", "rosbags>=0.11", "lxml>=4.8"]
IDENTIFY += ["matplotlib>=3.5", "rich>=10"]
# The guards of the page rely on private parts of viser.
PANEL = ["viser>=1.1.1,<1.2", "pycollada>=0.8"]
SYMBOLIC = ["sympy>=1.12"]

# colcon puts the executables there itself.
by_pip = "bdist_wheel" in sys.argv
LAUNCHED = [(f"lib/{package_name}", glob("resource/executables/*"))] if by_pip else []

setup(
    name=package_name,
    version="0.1.0",
    packages=find_packages(include=[package_name, f"{package_name}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
        (f"share/{package_name}/launch", glob("launch/*.launch.py")),
        (f"share/{package_name}/config", glob("config/*.*")),
        (f"share/{package_name}/config/robots", glob("config/robots/*.yaml")),
        (f"share/{package_name}/urdf", glob("urdf/*.urdf")),
        *LAUNCHED,
    ],
    python_requires=">=3.10",
    # rclpy and the message packages come with ROS 2, or from its wheels: see requirements/.
    install_requires=[
        # From the oldest to the newest that was tried: the kernels rely on private parts of these.
        "numpy>=1.21.5,<2.6",
        "numba>=0.55.1,<0.69",
        "llvmlite>=0.38,<0.51",
        "urdf-parser-py>=0.0.4",
        "PyYAML>=5.4",
    ],
    # No robot needs these. rnea_control/extras.py names what Python imports of the first three.
    extras_require={
        "sim": SIM,
        "move": MOVE,
        "demo": DEMO,
        "identify": IDENTIFY,
        "panel": PANEL,
        "symbolic": SYMBOLIC,
        "test": [
            *DEMO,
            *MOVE,
            *IDENTIFY,
            *PANEL,
            *SYMBOLIC,
            "playwright>=1.40",
            "pin>=3",
            "pytest>=7",
            "pytest-timeout>=2",
            "hypothesis>=6",
        ],
        "bench": [*DEMO, "pin>=3", "dynibo>=0.5"],
    },
    zip_safe=True,
    author="rnea_control maintainers",
    maintainer="rnea_control maintainers",
    maintainer_email="maintainers@rnea-control.example",
    description="Computed-torque control of robot arms over ROS 2, by recursive Newton-Euler",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "rnea_controller = rnea_control.node.executable:main",
            "rnea_simulated_arm = rnea_control.simulation.executable:main",
            "rnea_sentinel = rnea_control.sentinel.executable:main",
            "rnea_demo = rnea_control.demo.executable:main",
            "rnea_doctor = rnea_control.commands.doctor:main",
            "rnea_move = rnea_control.commands.move.executable:main",
            "rnea_tune = rnea_control.commands.tune.executable:main",
            "rnea_identify = rnea_control.commands.identify.executable:main",
            "rnea_panel = rnea_control.panel.executable:main",
        ],
    },
)
