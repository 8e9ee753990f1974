"""The test format of the pass tests; a module of its own because lit's workers look the class up by name."""
import re

import lit.formats
import lit.Test


class PassTest(lit.formats.ShTest):
    """A shell test that runs passes must also execute what goes in and what comes out, or say why it does not."""

    runs_passes = re.compile(r"RUN: (?!.*\bnot %burin-opt).*%burin-opt.*--(passes|pipeline)\b")
    executes = re.compile(r"RUN: .*%burin-opt.* --check\b|NOT-EXECUTED: \S+")

    def execute(self, test, lit_config):
        with open(test.getSourcePath()) as handle:
            text = handle.read()
        if self.runs_passes.search(text) and not self.executes.search(text):
            return lit.Test.FAIL, "runs passes, but no RUN line has --check and no line says NOT-EXECUTED: <reason>"
        return super().execute(test, lit_config)
