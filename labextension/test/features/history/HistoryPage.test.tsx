import { render, screen } from '@testing-library/react';
import React from 'react';

import { HistoryPage } from '../../../src/features/history/HistoryPage';
import { AuditLogModel } from '../../../src/model/auditLog';

test.each([
  ['Download CSV', 'csv', 'table for spreadsheets'],
  ['Download JSON Lines', 'jsonl', 'JSON object for each']
])('“%s” says that it downloads, and what', (name, format, what) => {
  const log = new AuditLogModel({
    auditUrl: (_, wanted) => `/audit?format=${wanted}`,
    listAudit: () => Promise.reject(new Error('not asked here'))
  });
  render(<HistoryPage log={log} />);
  const link = screen.getByRole('link', { name });
  expect(link.getAttribute('href')).toBe(`/audit?format=${format}`);
  expect(link.hasAttribute('download')).toBe(true);
  expect(link.title).toContain('all calls that match the filters');
  expect(link.title).toContain(what);
});
