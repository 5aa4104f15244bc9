# Each target does everything on a fresh machine with Python 3.10 or newer and make.
#   ROS_DISTRO=kilted make test    uses the other supported ROS 2 distribution

PYTHON ?= python3
ROS_DISTRO ?= jazzy
ifeq ($(filter $(ROS_DISTRO),jazzy kilted),)
$(error ROS_DISTRO is $(ROS_DISTRO); the ROS 2 wheels cover jazzy and kilted. In a workspace of another distribution use colcon)
endif

VENV := $(if $(filter jazzy,$(ROS_DISTRO)),.venv,.venv-$(ROS_DISTRO))
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
# Stamps; wheels bring folders of other names.
DEMO := $(VENV)/.demo
PANEL := $(VENV)/.panel
TOOLS := $(VENV)/.tools
INTERFACES := $(VENV)/interfaces
SOURCES := $(shell find rnea_control launch config urdf resource -type f -not -path '*/__pycache__/*') package.xml setup.py setup.cfg pyproject.toml
DEFINITIONS := $(shell find test/interfaces/definitions -type f)

# The wheels' messages and ours are found through it.
export AMENT_PREFIX_PATH := $(abspath $(VENV))
# Nothing here talks to another machine.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
# A sourced ROS 2 workspace must not mix with the wheels.
unexport PYTHONPATH LD_LIBRARY_PATH
# Each start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo panel test test-computed test-processes test-rest test-all bench soak lint clean
.DEFAULT_GOAL := demo

# Installs and compiles side by side what does not need each other.
PREPARE = @$(MAKE) --no-print-directory --jobs 3

demo:
	$(PREPARE) $(INSTALLED) $(INTERFACES) $(DEMO)
	$(BIN)/rnea_demo

panel:
	$(PREPARE) $(INSTALLED) $(INTERFACES) $(PANEL)
	$(BIN)/rnea_panel --simulate

# What decides whether a commit is right. What explores besides: computations, whose result is the
# same on any computer, and real processes, which need one that does nothing else.
test: LANE = not explores
test-computed: LANE = explores and not real_time
test-processes: LANE = explores and real_time
test-rest: test-computed test-processes
test-all: test test-rest
test test-computed test-processes:
	$(PREPARE) $(INSTALLED) $(INTERFACES) $(TOOLS)
	$(BIN)/pytest --numprocesses 2 -m "$(LANE)" $(PYTEST_ARGS)

bench:
	$(PREPARE) $(INSTALLED) $(INTERFACES) $(TOOLS)
	$(BIN)/python benchmark/report.py

soak:
	$(PREPARE) $(INSTALLED) $(INTERFACES) $(TOOLS)
	SOAK=$${SOAK:-600} $(BIN)/python benchmark/loop.py

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python test/language.py

clean:
	rm -rf .venv .venv-* build *.egg-info rnea_demo.png
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10) and \
		'rnea_control needs Python 3.10 or newer: make PYTHON=/path/to/python3')"
	$(PYTHON) -m venv $(VENV)
	touch $@

# Modules are compiled when they are imported: most never are.
PIP = $(BIN)/python -m pip install --quiet --no-compile

$(VENV)/.ros: $(VENV)/.made requirements/$(ROS_DISTRO).txt
	$(PIP) --no-deps -r requirements/$(ROS_DISTRO).txt
	touch $@

$(VENV)/.run: $(VENV)/.made requirements/run.txt
	$(PIP) -r requirements/run.txt
	touch $@

$(DEMO): $(VENV)/.run requirements/demo.txt
	$(PIP) -r requirements/demo.txt
	touch $@

$(PANEL): $(DEMO) requirements/panel.txt
	$(PIP) -r requirements/panel.txt
	touch $@

$(TOOLS): $(PANEL) requirements/test.txt
	$(PIP) -r requirements/test.txt
	touch $@

$(INSTALLED): $(VENV)/.ros $(VENV)/.run $(SOURCES)
	rm -rf build
	$(PIP) --no-deps --no-build-isolation --force-reinstall .
	$(BIN)/rnea_controller --compile
	touch $@

# The wheels lack these packages. Without a C compiler they are not built, and the stamp not made.
$(INTERFACES): $(VENV)/.ros $(VENV)/.run test/interfaces/build_interfaces.py $(DEFINITIONS)
	$(BIN)/python test/interfaces/build_interfaces.py $@
